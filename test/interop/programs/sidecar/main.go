// Reaches a CSI driver through the library that the sidecars of Kubernetes share, and tells, in lines of JSON, first what it is; then, for
// each line it reads, whether it answers over a connection made for the question.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
)

const patience = 5 * time.Second

var lines = json.NewEncoder(os.Stdout)

func main() {
	address := os.Args[1]
	ctx := context.Background()
	conn := try(connection.Connect(ctx, address, nil))
	if err := rpc.ProbeForever(ctx, conn, patience); err != nil {
		log.Fatal(err)
	}
	tell("name", try(rpc.GetDriverName(ctx, conn)))
	controller := try(rpc.GetControllerCapabilities(ctx, conn))
	names := []string{}
	for one := range controller {
		names = append(names, one.String())
	}
	tell("controller", names)
	plugin := try(rpc.GetPluginCapabilities(ctx, conn))
	tell("isController", plugin[csi.PluginCapability_Service_CONTROLLER_SERVICE])
	tell("node", try(csi.NewNodeClient(conn).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})).GetNodeId())

	for questions := bufio.NewScanner(os.Stdin); questions.Scan(); {
		ready, err := probe(address)
		if err != nil {
			tell("failure", err.Error())
		} else {
			tell("ready", ready)
		}
	}
}

func probe(address string) (bool, error) {
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	conn, err := connection.Connect(ctx, address, nil, connection.WithTimeout(time.Second))
	if err != nil {
		return false, err
	}
	defer conn.Close()
	return rpc.Probe(ctx, conn)
}

func try[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func tell(what string, value any) {
	if err := lines.Encode(map[string]any{what: value}); err != nil {
		log.Fatal(err)
	}
}
