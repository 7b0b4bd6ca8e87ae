//! Why a call to the API server did not give what was asked.
//!
//! One class for each thing that a caller does differently. It never carries a body, a header or the text of a
//! credential (C47): what a server wrote is reduced to its status code and its reason word.

use std::time::Duration;

use serde::Deserialize;

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// 401: the token is missing, expired or of another cluster.
    #[error("the API server does not accept the credentials (401)")]
    Unauthorized,
    /// 403 without a namespace that ends: the ClusterRole lacks a verb.
    #[error("the API server forbids it (403): look at the ClusterRole and its binding")]
    Forbidden,
    /// 404 for an object.
    #[error("the object does not exist (404)")]
    NotFound,
    /// 403 with the cause `NamespaceTerminating`, or 404 for the namespace itself.
    #[error("the namespace is terminating or gone")]
    NamespaceEnding,
    /// 409 with the reason `AlreadyExists`.
    #[error("the object exists already (409)")]
    AlreadyExists,
    /// Any other 409: somebody wrote the object at the same time.
    #[error("the object was changed meanwhile (409)")]
    Conflict,
    /// 410: the revision or the continue token is too old.
    #[error("the revision is too old for the API server (410)")]
    Gone,
    /// 429; the wait that the server asked for.
    #[error("the API server asks to wait (429)")]
    Throttled {
        /// The value of `Retry-After`, where there was one.
        retry_after: Option<Duration>,
    },
    /// 5xx.
    #[error("the API server failed ({code})")]
    Server {
        /// The status code.
        code: u16,
    },
    /// Any other refusal: a request that will not do better when repeated.
    #[error("the API server refuses the request ({code} {reason})")]
    Refused {
        /// The status code.
        code: u16,
        /// The reason word of the server's Status, letters only; empty where it gave none.
        reason: String,
    },
    /// No connection: refused, unresolved, not trusted, or no credentials to send.
    #[error("the API server cannot be reached: {why}")]
    Unreachable {
        /// The server's address and the causes, outermost first. Never the text of a credential.
        why: String,
    },
    /// Nothing came in time.
    #[error("the API server did not answer in time: {waiting_for}")]
    Timeout {
        /// What was waited for.
        waiting_for: &'static str,
    },
    /// The connection ended in the middle of an answer.
    #[error("the connection ended in the middle of the answer")]
    Closed,
    /// An answer that is not what the API promises.
    #[error("the answer cannot be decoded: {what}")]
    Undecodable {
        /// Which part, in words of this adapter.
        what: &'static str,
    },
    /// A watch told of a revision below one it had told of: etcd may have been restored from a backup.
    #[error("the revision of the watch went back from {from} to {to}")]
    WentBack {
        /// The revision that had been reached.
        from: u64,
        /// The lower one.
        to: u64,
    },
    /// An answer larger than this adapter reads.
    #[error("the answer is larger than {limit_bytes} bytes")]
    Oversize {
        /// The bound that was met.
        limit_bytes: usize,
    },
}

impl ApiError {
    /// One word for logs and the label of a metric.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::NamespaceEnding => "namespace_ending",
            Self::AlreadyExists => "already_exists",
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::Throttled { .. } => "throttled",
            Self::Server { .. } => "server",
            Self::Refused { .. } => "refused",
            Self::Unreachable { .. } => "unreachable",
            Self::Timeout { .. } => "timeout",
            Self::Closed => "closed",
            Self::Undecodable { .. } => "undecodable",
            Self::WentBack { .. } => "went_back",
            Self::Oversize { .. } => "oversize",
        }
    }

    /// The wait that the server asked for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after } => *retry_after,
            Self::Unauthorized
            | Self::Forbidden
            | Self::NotFound
            | Self::NamespaceEnding
            | Self::AlreadyExists
            | Self::Conflict
            | Self::Gone
            | Self::Server { .. }
            | Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. }
            | Self::Closed
            | Self::Undecodable { .. }
            | Self::WentBack { .. }
            | Self::Oversize { .. } => None,
        }
    }

    /// The class of an error answer: its code, its `Retry-After` and, where it can be read, its Status object.
    #[must_use]
    pub fn from_answer(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        // A proxy may answer with a page of HTML; the code alone has to do then.
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        Self::from_status(code, retry_after, &status)
    }

    /// The class of a Status object, as an answer's body or in an ERROR event of a watch.
    #[must_use]
    pub fn from_status(code: u16, retry_after: Option<Duration>, status: &Status) -> Self {
        match code {
            401 => Self::Unauthorized,
            403 if status.has_cause("NamespaceTerminating") => Self::NamespaceEnding,
            403 => Self::Forbidden,
            408 => Self::Timeout { waiting_for: "the API server's own work (408)" },
            404 if status.details.kind.as_deref() == Some("namespaces") => Self::NamespaceEnding,
            404 => Self::NotFound,
            409 if status.reason.as_deref() == Some("AlreadyExists") => Self::AlreadyExists,
            409 => Self::Conflict,
            410 => Self::Gone,
            429 => Self::Throttled { retry_after: retry_after.or(status.retry_after()) },
            500..=599 => Self::Server { code },
            _ => Self::Refused { code, reason: status.reason_word() },
        }
    }
}

/// The parts of a `v1.Status` that decide a class. All are optional, so that any JSON object can be read as one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The HTTP code that the Status stands for; the only code there is in an ERROR event.
    pub code: Option<u16>,
    /// The machine's word for the failure, such as `AlreadyExists`.
    pub reason: Option<String>,
    #[serde(deserialize_with = "null_is_default")]
    details: StatusDetails,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusDetails {
    kind: Option<String>,
    #[serde(deserialize_with = "null_is_default")]
    causes: Vec<StatusCause>,
    retry_after_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StatusCause {
    reason: Option<String>,
}

impl Status {
    fn has_cause(&self, reason: &str) -> bool {
        self.details.causes.iter().any(|cause| cause.reason.as_deref() == Some(reason))
    }

    fn retry_after(&self) -> Option<Duration> {
        self.details.retry_after_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs)
    }

    /// The reason, if it is one short word of letters as all of Kubernetes' are: nothing else that a server puts
    /// there reaches a log (C47).
    fn reason_word(&self) -> String {
        const REASON_CHARS_MAX: usize = 40;
        let reason = self.reason.clone().unwrap_or_default();
        let is_word = reason.len() <= REASON_CHARS_MAX && reason.chars().all(|c| c.is_ascii_alphabetic());
        if is_word { reason } else { String::new() }
    }
}

fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16, body: &str) -> ApiError {
        ApiError::from_answer(code, None, body.as_bytes())
    }

    #[test]
    fn each_status_code_has_its_class() {
        assert_eq!(answer(401, ""), ApiError::Unauthorized);
        assert_eq!(answer(403, "{}"), ApiError::Forbidden);
        assert_eq!(answer(404, r#"{"details":{"kind":"events"}}"#), ApiError::NotFound);
        assert_eq!(answer(409, r#"{"reason":"Conflict","details":null}"#), ApiError::Conflict);
        assert_eq!(answer(409, r#"{"reason":"AlreadyExists"}"#), ApiError::AlreadyExists);
        assert_eq!(answer(410, ""), ApiError::Gone);
        assert_eq!(answer(503, "<html>"), ApiError::Server { code: 503 });
        assert_eq!(
            answer(422, r#"{"reason":"Invalid"}"#),
            ApiError::Refused { code: 422, reason: "Invalid".into() }
        );
    }

    #[test]
    fn c32_a_namespace_that_ends_is_told_from_a_missing_permission() {
        let terminating =
            r#"{"reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating"}]}}"#;
        assert_eq!(answer(403, terminating), ApiError::NamespaceEnding);
        assert_eq!(answer(404, r#"{"details":{"kind":"namespaces"}}"#), ApiError::NamespaceEnding);
        assert_eq!(answer(403, r#"{"details":{"causes":null}}"#), ApiError::Forbidden);
    }

    #[test]
    fn the_header_goes_before_the_status_when_a_server_asks_to_wait() {
        let body = br#"{"details":{"retryAfterSeconds":7}}"#;
        let seven = Some(Duration::from_secs(7));
        let two = Some(Duration::from_secs(2));
        assert_eq!(ApiError::from_answer(429, None, body), ApiError::Throttled { retry_after: seven });
        assert_eq!(ApiError::from_answer(429, two, body), ApiError::Throttled { retry_after: two });
        assert_eq!(ApiError::from_answer(429, two, body).retry_after(), two);
        assert_eq!(answer(429, ""), ApiError::Throttled { retry_after: None });
    }

    #[test]
    fn c47_what_a_server_writes_is_reduced_to_a_word() {
        let error = answer(418, r#"{"reason":"Bearer eyJ0.secret-1 \n","message":"token abc"}"#);
        assert_eq!(error, ApiError::Refused { code: 418, reason: String::new() });
        assert!(!error.to_string().contains("abc"));
    }
}
