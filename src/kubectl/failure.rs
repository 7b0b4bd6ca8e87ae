//! Why a command could not do what was asked, as one line for a person. A refusal of the API server names the verb and the
//! resource, so that the line can be handed to whoever grants rights.
//!
//! It carries no body, header or credential (C47): the words of the API server's answers stay behind [`ApiError`].

use per_node::adapters::kube::api_error::ApiError;
use per_node::adapters::kube::client::ConnectError;

use crate::exit::Exit;

/// A command that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// No client could be made of the kubeconfig.
    #[error("{why}")]
    Connect {
        /// What is wrong, which file or context.
        why: String,
    },
    /// The caller's rights do not suffice. docs/kubectl.md lists what each command needs.
    #[error("you may not {verb} {resource}{}: ask for that right, or use another context", at(namespace))]
    Forbidden {
        /// The verb of RBAC.
        verb: &'static str,
        /// The resource of RBAC, with its subresource.
        resource: &'static str,
        /// `None` for what belongs to no namespace, and for all namespaces.
        namespace: Option<String>,
    },
    /// A call that failed otherwise.
    #[error("{verb} {resource}{}: {why}", at(namespace))]
    Api {
        /// The verb of RBAC.
        verb: &'static str,
        /// The resource of RBAC, with its subresource.
        resource: &'static str,
        /// Where.
        namespace: Option<String>,
        /// What happened.
        why: ApiError,
    },
    /// The command line is wrong in a way that only shows beside what the cluster says.
    #[error("{why}")]
    Usage {
        /// One sentence that names the flag or argument.
        why: String,
    },
    /// Nothing in the cluster has the name that was asked for.
    #[error("{why}")]
    Missing {
        /// What was looked for, and where.
        why: String,
    },
    /// Something on this machine.
    #[error("{what}: {why}")]
    Local {
        /// What was being done.
        what: &'static str,
        /// What happened.
        why: String,
    },
}

impl Failure {
    /// The code that tells a script.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. } => Exit::Usage,
            Self::Connect { .. }
            | Self::Forbidden { .. }
            | Self::Api { .. }
            | Self::Missing { .. }
            | Self::Local { .. } => Exit::Failed,
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self::Connect { why: error.to_string() }
    }
}

fn at(namespace: &Option<String>) -> String {
    namespace.as_ref().map(|namespace| format!(" in the namespace {namespace}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_named_by_verb_resource_and_namespace() {
        let forbidden =
            Failure::Forbidden { verb: "list", resource: "pods", namespace: Some("per-node".into()) };
        assert_eq!(
            forbidden.to_string(),
            "you may not list pods in the namespace per-node: ask for that right, or use another context"
        );
        assert_eq!(forbidden.exit().code(), 1);
    }
}
