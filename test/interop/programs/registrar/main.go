// Announces a CSI driver to the agent of its node, as the registrar beside every driver in Kubernetes does: registrar CSI-ADDRESS
// REGISTRATION-SOCKET. It asks the driver for its name, serves the registration service, and ends with code 1 when it hears that the driver
// is not registered. What it is told comes out in lines of JSON.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

var lines = json.NewEncoder(os.Stdout)

type registrar struct {
	registration.UnimplementedRegistrationServer
	name, endpoint string
}

func (r registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              r.name,
		Endpoint:          r.endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r registrar) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	tell(map[string]any{"registered": status.PluginRegistered, "error": status.Error})
	if !status.PluginRegistered {
		os.Exit(1)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func main() {
	endpoint, socket := os.Args[1], os.Args[2]
	name := driverName(endpoint)
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	syscall.Umask(0077)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		<-ended
		os.Remove(socket)
		os.Exit(0)
	}()
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, registrar{name: name, endpoint: endpoint})
	log.Fatal(server.Serve(listener))
}

func driverName(endpoint string) string {
	ctx, done := context.WithTimeout(context.Background(), 30*time.Second)
	defer done()
	conn, err := connection.Connect(ctx, endpoint, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	name, err := rpc.GetDriverName(ctx, conn)
	if err != nil {
		log.Fatal(err)
	}
	return name
}

func tell(line any) {
	if err := lines.Encode(line); err != nil {
		log.Fatal(err)
	}
}
