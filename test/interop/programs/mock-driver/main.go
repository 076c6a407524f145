// The mock CSI driver of Kubernetes' own tests as a program: its answers, on a unix socket, in front of real bind mounts, remembered
// over its death. It has no handler for SIGTERM and takes a socket that is in its way, as drivers in Go commonly do.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/driver"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
)

func main() {
	endpoint := flag.String("endpoint", os.Getenv("CSI_ENDPOINT"), "where to listen, as unix:///path")
	name := flag.String("drivername", service.Name, "what it calls itself, and its node")
	stateDir := flag.String("statedir", "", "where its volumes and what it remembers are")
	attach := flag.Bool("attach", false, "whether volumes have to be published by the controller first")
	maxVolumes := flag.Int64("maxvolumes", 0, "how many volumes a node takes; 0 for no limit")
	flag.Parse()

	directories := &Directories{root: *stateDir}
	mock := service.New(service.Config{
		DriverName:                  *name,
		DisableAttach:               !*attach,
		AttachLimit:                 *maxVolumes,
		NodeExpansionRequired:       true,
		NodeVolumeConditionRequired: true,
		EnableTopology:              true,
		IO:                          directories,
	})
	journal, err := openJournal(*stateDir, mock)
	if err != nil {
		log.Fatal(err)
	}
	directories.live = true

	path := strings.TrimPrefix(*endpoint, "unix://")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	servers := &driver.CSIDriverServers{Controller: mock, Identity: mock, Node: mock}
	if err := driver.NewCSIDriver(servers).Start(listener, oneByOne(directories, journal)); err != nil {
		log.Fatal(err)
	}
	log.Printf("listens on %s", path)
	select {}
}

// oneByOne handles a call at a time, since the mock gives out maps that it goes on writing to.
func oneByOne(directories *Directories, journal *Journal) grpc.UnaryServerInterceptor {
	var turn sync.Mutex
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		turn.Lock()
		defer turn.Unlock()
		reply, err := handle(ctx, request)
		if err != nil {
			return nil, err
		}
		if err := directories.follow(request); err != nil {
			return nil, err
		}
		if err := journal.add(info.FullMethod, request.(proto.Message)); err != nil {
			return nil, err
		}
		return proto.Clone(reply.(proto.Message)), nil
	}
}
