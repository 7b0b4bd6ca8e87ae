//! What goes over the sockets: the messages, servers and clients generated from `proto/` by `build.rs`, and the JSON of
//! `/copies`.
//!
//! No decision is made here. The domain never sees these types: the inbound adapters translate.

pub mod codec;
mod redact;
pub mod report;

/// `csi.v1`: Identity and Node, and the Controller for the stub in the tests.
pub mod csi {
    #![allow(clippy::all, clippy::pedantic, clippy::nursery, missing_docs, rustdoc::all)]
    tonic::include_proto!("csi.v1");
}

/// `pluginregistration`: how the kubelet learns of a plugin.
pub mod registration {
    #![allow(clippy::all, clippy::pedantic, clippy::nursery, missing_docs, rustdoc::all)]
    tonic::include_proto!("pluginregistration");
}

#[cfg(test)]
mod wire_tests;
