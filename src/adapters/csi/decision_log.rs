//! One line of the log for each call that decided something: what was asked and for whom, how it ended, and after how long.
//!
//! Every line that the driver writes on the way carries the call's number (the span `call`), so that one call can be
//! followed. No message that is counted has it (C33). Calls that only look are logged where they failed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tonic::Status;
use tracing::{Span, error_span};

use crate::domain::volume_request::{AccessMode, PublishRequest, UnpublishRequest};

/// What a caller sent is shown up to this many characters.
const SHOWN_MAX: usize = 300;

/// The latest call's number. It begins anew with the process.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// A call, as the log shows it.
#[derive(Debug)]
pub(super) struct Asked {
    /// The name of the RPC.
    pub call: &'static str,
    volume: String,
    target_path: String,
    pod: Option<String>,
    access_mode: Option<String>,
    readonly: Option<bool>,
    /// In the log where it is done; `None`: it changes nothing, and only a failure is worth a line.
    done: Option<&'static str>,
    begun: Instant,
}

impl Asked {
    pub(super) fn to_publish(request: &PublishRequest) -> Asked {
        let mode = request.capability.as_ref().and_then(|capability| capability.access_mode);
        let pod = [&request.pod.namespace, &request.pod.name].map(|part| part.as_deref().unwrap_or_default());
        Asked {
            pod: request.pod.name.is_some().then(|| shown(&pod.join("/"))),
            access_mode: mode.and_then(AccessMode::from_wire).map(|mode| format!("{mode:?}")),
            readonly: Some(request.readonly),
            done: Some("published"),
            ..Asked::to_look("NodePublishVolume", &request.volume_id, &request.target_path)
        }
    }

    pub(super) fn to_unpublish(request: &UnpublishRequest) -> Asked {
        let asked = Asked::to_look("NodeUnpublishVolume", &request.volume_id, &request.target_path);
        Asked { done: Some("unpublished"), ..asked }
    }

    pub(super) fn to_look(call: &'static str, volume_id: &str, path: &str) -> Asked {
        Asked {
            call,
            volume: shown(volume_id),
            target_path: shown(path),
            pod: None,
            access_mode: None,
            readonly: None,
            done: None,
            begun: Instant::now(),
        }
    }

    /// What the driver's own lines about this call are written in.
    pub(super) fn span(&self) -> Span {
        // At the highest level, for the number to be there whatever the log's level is.
        error_span!("call", id = LATEST.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Writes how it ended. To be called in its span. A refusal that names no pod posts no event (C30): this line is all
    /// that tells of it.
    pub(super) fn answered<T>(&self, code: &'static str, answer: &Result<T, Status>) {
        let Asked { call, volume, target_path, pod, access_mode, readonly, done, begun } = self;
        let duration_ms = f64::from(u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX)) / 1000.0;
        match (answer, done) {
            (Ok(_), Some(done)) => tracing::info!(
                ?volume,
                pod = pod.as_ref().map(tracing::field::debug),
                ?target_path,
                access_mode,
                readonly,
                code,
                duration_ms,
                "{done}"
            ),
            (Ok(_), None) => tracing::debug!(call, ?volume, ?target_path, code, duration_ms, "answered"),
            (Err(status), _) => tracing::warn!(
                call,
                ?volume,
                pod = pod.as_ref().map(tracing::field::debug),
                ?target_path,
                access_mode,
                readonly,
                code,
                duration_ms,
                why = status.message(),
                "not done"
            ),
        }
    }
}

/// Quoted where it is written, so that no name forges a line of the log.
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).collect()
}
