//! Events to the log, where there is no API server to take them (`--standalone`).

use async_trait::async_trait;

use crate::domain::event_series::Series;
use crate::ports::event_sink::{EventSink, EventSinkError};

/// Takes every event and writes it as one line.
#[derive(Debug, Default)]
pub struct EventLog;

#[async_trait]
impl EventSink for EventLog {
    async fn create(&self, series: &Series) -> Result<(), EventSinkError> {
        write(series);
        Ok(())
    }

    async fn patch(&self, series: &Series) -> Result<(), EventSinkError> {
        write(series);
        Ok(())
    }
}

fn write(series: &Series) {
    let key = &series.key;
    tracing::warn!(
        subject = %key.subject,
        uid = key.subject.uid(),
        reason = key.reason.as_str(),
        count = series.count,
        "event: {}",
        key.message
    );
}
