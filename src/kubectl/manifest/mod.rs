//! `kubectl per-node manifest`: the objects of a volume, checked against the rules of the handle and of names before anybody
//! applies them, with a comment at each field that says what it is for.
//!
//! It asks no API server and writes nothing: what it prints is for `kubectl apply -f -` or for a file.

mod flags;
mod objects;
mod workloads;
mod yaml;

pub use flags::ManifestFlags;
pub use objects::STORAGE_CLASS;

#[cfg(test)]
mod tests;

use per_node::domain::handle::{Handle, HandleError};
use thiserror::Error;

use crate::cli::ReachFlags;
use crate::connect::default_namespace;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::quantity::{Quantity, QuantityError};

/// The longest DNS-1123 label, in bytes.
const LABEL_LENGTH_MAX: usize = 63;
/// The longest name of a StatefulSet: its pods carry it, `-` and a hash of ten characters in one label.
const STATEFUL_SET_NAME_LENGTH_MAX: usize = LABEL_LENGTH_MAX - 11;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name of the volume, its handle, its claim and its workload.
    pub name: String,
    /// Where the claim and the workload live.
    pub namespace: String,
    /// The capacity, as typed.
    pub size: String,
    pub mode: Mode,
    /// The driver's name, which is deploy/'s unless somebody gave it another.
    pub driver_name: String,
    pub workload: Option<Workload>,
}

/// How many pods may mount the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// ReadWriteMany: pods on many nodes, one on each
    Rwx,
    /// ReadWriteOncePod: one pod in the whole cluster
    Rwop,
}

/// What runs the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    StatefulSet,
    DaemonSet,
    Deployment,
}

/// The rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestError {
    #[error("NAME {name:?}: {rule}")]
    Handle { name: String, rule: HandleError },
    #[error(
        "NAME {name:?}: the name of a {kind} is a DNS-1123 label of at most {max} bytes here: lower-case letters, digits \
         and '-', with a letter or digit at both ends; leave the workload out, or give another name"
    )]
    WorkloadName { name: String, kind: &'static str, max: usize },
    #[error(
        "--namespace {namespace:?}: a namespace is a DNS-1123 label of at most {LABEL_LENGTH_MAX} bytes: lower-case letters, \
         digits and '-', with a letter or digit at both ends"
    )]
    Namespace { namespace: String },
    #[error("--size {size:?}: {rule}")]
    Size { size: String, rule: QuantityError },
    #[error(
        "--mode rwop with --daemonset: one pod in the whole cluster may mount the volume, and a DaemonSet wants one on each \
         node; use --mode rwx, --deployment or --statefulset"
    )]
    OncePodOnEveryNode,
}

/// Checks and prints.
pub fn run(reach: &ReachFlags, flags: ManifestFlags) -> Result<Exit, Failure> {
    let namespace = match flags.namespace {
        Some(namespace) => namespace,
        None => default_namespace(reach)?,
    };
    let workload = flags.workload.kind();
    let ManifestFlags { name, size, mode, .. } = flags;
    let driver_name = reach.driver_name.clone();
    let request = Request { name, namespace, size, mode, driver_name, workload };
    let text = manifest(&request).map_err(|broken| Failure::Usage { why: broken.to_string() })?;
    output::print(&text)?;
    Ok(Exit::Complete)
}

/// The objects as the text of a YAML stream, or the first rule that they would break.
pub fn manifest(request: &Request) -> Result<String, ManifestError> {
    check(request)?;
    let mut documents = vec![objects::volume(request), objects::claim(request)];
    documents.extend(request.workload.map(|workload| workloads::workload(request, workload)));
    Ok(documents.join("---\n"))
}

fn check(request: &Request) -> Result<(), ManifestError> {
    let name = &request.name;
    // The handle's rules are those of every object's name, and the sentence says what to do.
    Handle::parse(name).map_err(|rule| ManifestError::Handle { name: name.clone(), rule })?;
    if let Some(workload) = request.workload
        && !is_label(name, workload.name_length_max())
    {
        let (kind, max) = (workload.kind(), workload.name_length_max());
        return Err(ManifestError::WorkloadName { name: name.clone(), kind, max });
    }
    if !is_label(&request.namespace, LABEL_LENGTH_MAX) {
        return Err(ManifestError::Namespace { namespace: request.namespace.clone() });
    }
    Quantity::parse(&request.size)
        .map_err(|rule| ManifestError::Size { size: request.size.clone(), rule })?;
    match (request.mode, request.workload) {
        (Mode::Rwop, Some(Workload::DaemonSet)) => Err(ManifestError::OncePodOnEveryNode),
        (Mode::Rwop, Some(Workload::Deployment | Workload::StatefulSet) | None) | (Mode::Rwx, _) => Ok(()),
    }
}

fn is_label(raw: &str, length_max: usize) -> bool {
    raw.len() <= length_max && !raw.contains('.') && Handle::parse(raw).is_ok()
}

impl Mode {
    /// The word of the API.
    pub fn access_mode(self) -> &'static str {
        match self {
            Mode::Rwx => "ReadWriteMany",
            Mode::Rwop => "ReadWriteOncePod",
        }
    }
}

impl Workload {
    pub fn kind(self) -> &'static str {
        match self {
            Workload::StatefulSet => "StatefulSet",
            Workload::DaemonSet => "DaemonSet",
            Workload::Deployment => "Deployment",
        }
    }

    fn name_length_max(self) -> usize {
        match self {
            Workload::StatefulSet => STATEFUL_SET_NAME_LENGTH_MAX,
            Workload::DaemonSet | Workload::Deployment => LABEL_LENGTH_MAX,
        }
    }
}
