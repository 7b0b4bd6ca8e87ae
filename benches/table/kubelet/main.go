// Command kubelet mounts and unmounts as a kubelet does, with the kubelet's own client library and dial options, and prints
// how long each took. It takes turns between the servers that it is given, call by call.
//
//	kubelet ROUNDS FIRST NAME=SOCKET=DIRECTORY ...
//
// Round N publishes the volume bench-N at DIRECTORY/pods/…/mount, whose parent it makes, and unpublishes it. It prints lines
// of `NAME mount|unmount NANOSECONDS`.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// What a kubelet asks before the publish, each time on a connection of its own.
const capabilityCalls = 4

// As long as a kubelet waits for one call.
const callTimeout = 2 * time.Minute

type server struct{ name, socket, directory string }

func main() {
	if len(os.Args) < 4 {
		log.Fatal("kubelet ROUNDS FIRST NAME=SOCKET=DIRECTORY ...")
	}
	rounds, first := number(os.Args[1]), number(os.Args[2])
	var servers []server
	for _, argument := range os.Args[3:] {
		parts := strings.SplitN(argument, "=", 3)
		if len(parts) != 3 {
			log.Fatalf("%q is not NAME=SOCKET=DIRECTORY", argument)
		}
		servers = append(servers, server{parts[0], parts[1], parts[2]})
	}
	out := bufio.NewWriter(os.Stdout)
	for round := range rounds {
		// Who is first changes, so that nobody always finds what the other left in the caches.
		for turn := range servers {
			servers[(turn+round)%len(servers)].mountAndUnmount(first+round, out)
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func (s server) mountAndUnmount(round int, out *bufio.Writer) {
	uid := fmt.Sprintf("00000000-0000-4000-8000-%012d", round)
	volume := fmt.Sprintf("bench-%d", round)
	parent := filepath.Join(s.directory, "pods", uid, "volumes/kubernetes.io~csi", volume)
	if err := os.MkdirAll(parent, 0o750); err != nil {
		log.Fatal(err)
	}
	// The kubelet's note that it knows the volume; it writes it before the call.
	if err := os.WriteFile(filepath.Join(parent, "vol_data.json"), []byte("{}"), 0o640); err != nil {
		log.Fatal(err)
	}
	target := filepath.Join(parent, "mount")
	request := publishRequest(volume, target, uid)

	began := time.Now()
	for range capabilityCalls {
		s.call(func(ctx context.Context, node csi.NodeClient) error {
			_, err := node.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
			return err
		})
	}
	s.call(func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodePublishVolume(ctx, request)
		return err
	})
	fmt.Fprintf(out, "%s mount %d\n", s.name, time.Since(began).Nanoseconds())

	began = time.Now()
	s.call(func(ctx context.Context, node csi.NodeClient) error {
		_, err := node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: target})
		return err
	})
	fmt.Fprintf(out, "%s unmount %d\n", s.name, time.Since(began).Nanoseconds())
}

// One call on a fresh connection, which is closed after it.
func (s server) call(do func(context.Context, csi.NodeClient) error) {
	// What the kubelet itself uses (pkg/volume/csi): it connects at once, and passes the path through to the dialer.
	connection, err := grpc.Dial( //nolint:staticcheck
		s.socket,
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			var dialer net.Dialer
			return dialer.DialContext(ctx, "unix", path)
		}),
	)
	if err != nil {
		log.Fatalf("%s: %v", s.name, err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	if err := do(ctx, csi.NewNodeClient(connection)); err != nil {
		log.Fatalf("%s: %v", s.name, err)
	}
}

func publishRequest(volume, target, uid string) *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{
		VolumeId:   volume,
		TargetPath: target,
		VolumeCapability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
		},
		VolumeContext: map[string]string{
			"csi.storage.k8s.io/pod.name":      "pod",
			"csi.storage.k8s.io/pod.namespace": "default",
			"csi.storage.k8s.io/pod.uid":       uid,
		},
	}
}
