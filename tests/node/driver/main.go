// A CSI driver for the tests on real nodes: one binary for identity, controller, node and registration. A volume is a folder below
// -data, which all nodes have; a mount is a bind mount. It does what claimguard's documents ask of drivers, and nothing else.
//
//	driver -name NAME -data FOLDER [-kubelet /var/lib/kubelet] [-defer]
//
// -defer: it reads the annotation claimguard.io/defer-fs-mount, as docs/deferfsmount.md says. It ends with SIGTERM, and takes its sockets away,
// so that the kubelet takes it out of the CSINode.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	registration.UnsafeRegistrationServer
	name, node, data, socket string
	deferral                 *deferral // nil: it reads no annotation
}

func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

func (d *driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{
		Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}}}}, nil
}

func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// What node-driver-registrar does: the kubelet finds the socket in plugins_registry, and asks.
func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: d.name, Endpoint: d.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

func (d *driver) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %v %s", s.PluginRegistered, s.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

// Each call that fails is logged: what the kubelet says of it is cut.
func logged(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	answer, err := handler(ctx, request)
	if err != nil {
		log.Printf("%s: %v", info.FullMethod, err)
	}
	return answer, err
}

// A server on a Unix socket.
type server struct {
	*grpc.Server
	socket string
	file   os.FileInfo
}

// In the place of the one that a killed driver left.
func serve(path string, register func(*grpc.Server)) server {
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.RemoveAll(path)); err != nil {
		log.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		log.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	file, err := os.Stat(path)
	if err != nil {
		log.Fatal(err)
	}
	s := server{grpc.NewServer(grpc.UnaryInterceptor(logged)), path, file}
	register(s.Server)
	go func() {
		if err := s.Serve(listener); err != nil {
			log.Fatal(err)
		}
	}()
	return s
}

// The socket goes, too; not that of the next driver, which a kubelet may start before this one ends.
func (s server) end() {
	if file, err := os.Stat(s.socket); err == nil && os.SameFile(file, s.file) {
		if err := os.Remove(s.socket); err != nil {
			log.Print(err)
		}
	}
	s.Stop()
}

func main() {
	d := &driver{}
	flag.StringVar(&d.name, "name", "", "the driver's name")
	flag.StringVar(&d.data, "data", "", "the folder of the volumes")
	kubelet := flag.String("kubelet", "/var/lib/kubelet", "the kubelet's folder")
	deferring := flag.Bool("defer", false, "read claimguard.io/defer-fs-mount")
	flag.Parse()
	d.node = os.Getenv("NODE_NAME")
	folder := filepath.Join(*kubelet, "plugins", d.name)
	d.socket = filepath.Join(folder, "csi.sock")
	if *deferring {
		d.deferral = newDeferral(filepath.Join(folder, "decisions"))
	}
	plugin := serve(d.socket, func(s *grpc.Server) {
		csi.RegisterIdentityServer(s, d)
		csi.RegisterControllerServer(s, d)
		csi.RegisterNodeServer(s, d)
	})
	registrar := serve(filepath.Join(*kubelet, "plugins_registry", d.name+"-reg.sock"), func(s *grpc.Server) {
		registration.RegisterRegistrationServer(s, d)
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	<-ctx.Done()
	registrar.end()
	plugin.end()
}
