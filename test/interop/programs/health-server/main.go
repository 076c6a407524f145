// A gRPC server with the health service that comes with grpc-go, on the unix socket it is told of. SIGUSR1 makes it SERVING, SIGUSR2
// NOT_SERVING; it has no handler for SIGTERM and takes a socket that is in its way, as servers in Go commonly do.
package main

import (
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

func main() {
	endpoint := flag.String("endpoint", os.Getenv("GRPC_ENDPOINT"), "where to listen, as unix:///path")
	service := flag.String("service", "", "the service whose health is told; empty for the server as a whole")
	serving := flag.Bool("serving", true, "whether it serves from the start")
	flag.Parse()

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	healthServer := health.NewServer()
	healthServer.SetServingStatus(*service, statusOf(*serving))

	path := strings.TrimPrefix(*endpoint, "unix://")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, healthServer)
	go func() {
		for received := range signals {
			healthServer.SetServingStatus(*service, statusOf(received == syscall.SIGUSR1))
		}
	}()
	log.Fatal(server.Serve(listener))
}

func statusOf(serving bool) grpc_health_v1.HealthCheckResponse_ServingStatus {
	if serving {
		return grpc_health_v1.HealthCheckResponse_SERVING
	}
	return grpc_health_v1.HealthCheckResponse_NOT_SERVING
}
