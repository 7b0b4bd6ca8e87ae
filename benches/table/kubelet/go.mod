// The kubelet's side of the benchmark, with the library that the kubelet has: there is no Go in the product.
module per-node.liken.sh/benches/kubelet

go 1.26

require (
	github.com/container-storage-interface/spec v1.13.0
	google.golang.org/grpc v1.82.1
)

require (
	golang.org/x/net v0.55.0 // indirect
	golang.org/x/sys v0.45.0 // indirect
	golang.org/x/text v0.37.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
