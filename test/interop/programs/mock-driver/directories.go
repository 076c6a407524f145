package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/kubernetes/test/e2e/storage/drivers/csi-test/mock/service"
)

// Directories are what the mock believes to be its volumes. They touch nothing before they are live: what is remembered has been done.
type Directories struct {
	root string
	live bool
}

// follow does to the mounts what the mock has just agreed to.
func (d *Directories) follow(request any) error {
	switch r := request.(type) {
	case *csi.NodePublishVolumeRequest:
		if r.GetVolumeCapability().GetBlock() == nil {
			return internal(d.bind(r.GetVolumeId(), r.GetTargetPath(), r.GetReadonly()))
		}
	case *csi.DeleteVolumeRequest:
		if filepath.IsLocal(r.GetVolumeId()) {
			return internal(os.RemoveAll(d.volume(r.GetVolumeId())))
		}
	}
	return nil
}

func (d *Directories) volume(id string) string {
	return filepath.Join(d.root, "volumes", id)
}

func (d *Directories) bind(id, target string, readonly bool) error {
	mounted, err := isMounted(target)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(d.volume(id), 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(d.volume(id), target, "", syscall.MS_BIND, ""); err != nil || !readonly {
		return err
	}
	return syscall.Mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}

func (d *Directories) DirExists(path string) (bool, error) {
	if !d.live {
		return true, nil
	}
	return service.OSDirIO{}.DirExists(path)
}

func (d *Directories) Mkdir(path string) error {
	if !d.live {
		return nil
	}
	return os.Mkdir(path, 0o755)
}

// RemoveAll takes a target away, and nothing that is in the volume.
func (d *Directories) RemoveAll(path string) error {
	if !d.live {
		return nil
	}
	if mounted, err := isMounted(path); err != nil {
		return err
	} else if mounted {
		if err := syscall.Unmount(path, 0); err != nil {
			return err
		}
	}
	if err := os.Remove(path); !os.IsNotExist(err) {
		return err
	}
	return nil
}

func (d *Directories) Rename(from, to string) error {
	return os.Rename(from, to)
}

var escapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func isMounted(path string) (bool, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	for _, line := range strings.Split(string(table), "\n") {
		if fields := strings.Fields(line); len(fields) > 4 && escapes.Replace(fields[4]) == path {
			return true, err
		}
	}
	return false, err
}

func internal(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codes.Internal, err.Error())
}
