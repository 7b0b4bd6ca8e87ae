//! What a workload's objects say: whether a pod is ready, its container's last words and flags,
//! numbers of pods.

use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The value of a flag, written as one argument or as two.
pub fn flag<'c>(container: &'c Container, flag: &str) -> Option<&'c str> {
    let arguments: Vec<&str> = container.args.iter().flatten().map(String::as_str).collect();
    let joined = arguments.iter().find_map(|one| one.strip_prefix(flag)?.strip_prefix('='));
    joined.or_else(|| {
        let at = arguments.iter().position(|one| *one == flag)?;
        arguments.get(at + 1).copied()
    })
}

/// Whether a number of pods, as a rolling update has it, is none.
pub fn is_zero(pods: &IntOrString) -> bool {
    match pods {
        IntOrString::Int(pods) => *pods == 0,
        IntOrString::String(pods) => pods.trim_end_matches('%') == "0",
    }
}

/// Whether a pod's condition Ready is true.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}

/// The command that shows why a plugin's pod is not well: its log, or where no container has begun, the pod's events.
pub fn to_read(plugin: &Pod) -> String {
    let metadata = &plugin.metadata;
    let [pod, namespace] = [&metadata.name, &metadata.namespace].map(|part| part.clone().unwrap_or_default());
    if has_begun(plugin) {
        format!("kubectl logs {pod} -n {namespace}")
    } else {
        format!("kubectl describe pod {pod} -n {namespace}")
    }
}

/// Whether a container of the pod runs or has run. Of one that has not, as with an image that cannot be pulled, there is no log.
fn has_begun(pod: &Pod) -> bool {
    let Some(status) = pod.status.as_ref() else { return false };
    let mut containers = status.container_statuses.iter().flatten().peekable();
    if containers.peek().is_none() {
        return status.phase.as_deref() == Some("Running");
    }
    containers.any(|one| {
        let [now, before] = [&one.state, &one.last_state].map(Option::as_ref);
        now.is_some_and(|state| state.running.is_some() || state.terminated.is_some())
            || before.is_some_and(|state| state.terminated.is_some())
    })
}

/// Why the plugin's container does not run, and its last line: the plugin's own word for what is wrong (C44).
pub fn last_words(plugin: &Pod) -> Vec<String> {
    let statuses = plugin.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let mut words = Vec::new();
    for status in statuses {
        if let Some(waiting) = status.state.as_ref().and_then(|state| state.waiting.as_ref()) {
            let text = [&waiting.reason, &waiting.message].map(|text| text.clone().unwrap_or_default());
            words.push(format!("its container waits: {}", text.join(": ")));
        }
        let ended = [&status.state, &status.last_state];
        let ended = ended.into_iter().find_map(|state| state.as_ref()?.terminated.as_ref());
        if let Some(ended) = ended {
            let message = ended.message.as_deref().unwrap_or_default();
            let last = message.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no last words");
            words.push(format!("its container ended with {}: {}", ended.exit_code, last.trim()));
        }
    }
    words
}
