package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
)

// Journal is how the mock, which keeps all in memory, remembers: every call that changed something, to be made again at the next start.
type Journal struct {
	file *os.File
}

type entry struct {
	Method  string          `json:"method"`
	Request json.RawMessage `json:"request"`
}

// openJournal reads what is remembered into the mock. The last line is left out where a death has cut it off.
func openJournal(directory string, mock service.Service) (*Journal, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(directory, "journal"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	whole := int64(0)
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return &Journal{file}, file.Truncate(whole)
		} else if err != nil {
			return nil, err
		}
		if err := again(line, mock); err != nil {
			return nil, fmt.Errorf("%s at byte %d: %w", file.Name(), whole, err)
		}
		whole += int64(len(line))
	}
}

func again(line []byte, mock service.Service) error {
	var one entry
	if err := json.Unmarshal(line, &one); err != nil {
		return err
	}
	read := func(request any) error { return protojson.Unmarshal(one.Request, request.(proto.Message)) }
	for _, description := range []grpc.ServiceDesc{csi.Controller_ServiceDesc, csi.Node_ServiceDesc} {
		for _, method := range description.Methods {
			if one.Method == "/"+description.ServiceName+"/"+method.MethodName {
				_, err := method.Handler(mock, context.Background(), read, nil)
				return err
			}
		}
	}
	return fmt.Errorf("no method %s", one.Method)
}

func (j *Journal) add(method string, request proto.Message) error {
	if !changes(method[strings.LastIndex(method, "/")+1:]) {
		return nil
	}
	text, err := protojson.Marshal(request)
	if err != nil {
		return err
	}
	line, err := json.Marshal(entry{method, text})
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}

func changes(method string) bool {
	for _, verb := range []string{"Create", "Delete", "Stage", "Unstage", "Publish", "Unpublish", "Expand"} {
		if strings.Contains(method, verb) {
			return true
		}
	}
	return false
}
