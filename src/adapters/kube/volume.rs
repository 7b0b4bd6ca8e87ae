//! A PersistentVolume as far as the driver needs one, and how it is read from JSON.
//!
//! Only UID, revision and `spec.csi` are looked at; the rest of an object is passed over without being kept, and
//! of volumes of other drivers nothing is kept at all (C48). Deletion timestamps are not looked at: a terminating
//! PersistentVolume still names its handle (C21).

use std::borrow::Cow;

use serde::Deserialize;

use crate::domain::handle::Handle;

use super::api_error::{ApiError, Status};

/// A PersistentVolume, reduced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// `metadata.uid`: a volume deleted and made again under its name is another one.
    pub uid: String,
    /// The handle it names, or `None` where it is another driver's, or where its handle is none that could ever have been
    /// published (C3) and so has no copy anywhere.
    pub handle: Option<Handle>,
}

/// One event of a watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// ADDED or MODIFIED: the volume is as it says, as of the revision.
    Named {
        /// The volume as it now is.
        volume: Volume,
        /// The revision of this change.
        revision: u64,
    },
    /// DELETED.
    Deleted {
        /// The volume as it last was.
        volume: Volume,
        /// The revision of the deletion.
        revision: u64,
    },
    /// BOOKMARK: everything up to the revision has been delivered.
    Bookmark {
        /// That revision.
        revision: u64,
        /// Whether this is the bookmark that ends the initial events of a streamed list.
        ends_initial_events: bool,
    },
    /// ERROR: the server ends the stream and says why.
    Failed(ApiError),
}

/// One page of a list.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// The revision of the whole list, the same on all its pages.
    pub revision: u64,
    /// The token of the next page; `None` on the last.
    pub next: Option<String>,
    /// How many volumes of any driver the page has.
    pub item_count: usize,
    /// Those of this driver.
    pub volumes: Vec<Volume>,
}

#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: WireObject<'a>,
}

/// A PersistentVolume, a bookmark or a Status: what may stand in an event.
#[derive(Deserialize)]
struct WireObject<'a> {
    #[serde(borrow)]
    metadata: Option<WireMetadata<'a>>,
    #[serde(borrow)]
    spec: Option<WireSpec<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMetadata<'a> {
    #[serde(borrow)]
    uid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    resource_version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "continue")]
    next: Option<Cow<'a, str>>,
    #[serde(borrow)]
    annotations: Option<WireAnnotations<'a>>,
}

#[derive(Deserialize)]
struct WireAnnotations<'a> {
    #[serde(borrow, rename = "k8s.io/initial-events-end")]
    initial_events_end: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct WireSpec<'a> {
    #[serde(borrow)]
    csi: Option<WireCsi<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCsi<'a> {
    #[serde(borrow)]
    driver: Cow<'a, str>,
    #[serde(borrow)]
    volume_handle: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct WireList<'a> {
    #[serde(borrow)]
    metadata: WireMetadata<'a>,
    /// It may be `null`, as Go writes an empty list, but not be missing: what has no items is no list, and no proof that
    /// there are none.
    #[serde(borrow, deserialize_with = "Deserialize::deserialize")]
    items: Option<Vec<WireObject<'a>>>,
}

#[derive(Deserialize)]
struct WireFailure {
    object: Status,
}

/// Reads one line of a watch.
///
/// # Errors
/// `Undecodable` where the line is no event of PersistentVolumes, or one whose driver cannot be told.
pub fn read_event(line: &[u8], driver_name: &str) -> Result<WatchEvent, ApiError> {
    let event: WireEvent<'_> =
        serde_json::from_slice(line).map_err(|_| ApiError::Undecodable { what: "an event of the watch" })?;
    match event.kind.as_ref() {
        "ADDED" | "MODIFIED" => Ok(WatchEvent::Named {
            volume: event.object.volume(driver_name)?,
            revision: event.object.revision()?,
        }),
        "DELETED" => Ok(WatchEvent::Deleted {
            volume: event.object.volume(driver_name)?,
            revision: event.object.revision()?,
        }),
        "BOOKMARK" => Ok(WatchEvent::Bookmark {
            revision: event.object.revision()?,
            ends_initial_events: event.object.ends_initial_events(),
        }),
        "ERROR" => Ok(WatchEvent::Failed(read_failure(line)?)),
        _ => Err(ApiError::Undecodable { what: "the type of an event" }),
    }
}

/// Reads one page of a list.
///
/// # Errors
/// `Undecodable` where the page or one object of it cannot be read, or the driver of one cannot be told.
pub fn read_page(body: &[u8], driver_name: &str) -> Result<Page, ApiError> {
    let list: WireList<'_> =
        serde_json::from_slice(body).map_err(|_| ApiError::Undecodable { what: "a page of a list" })?;
    let items = list.items.unwrap_or_default();
    let mut volumes = Vec::new();
    for item in &items {
        let volume = item.volume(driver_name)?;
        if volume.handle.is_some() {
            volumes.push(volume);
        }
    }
    Ok(Page {
        revision: parse_revision(list.metadata.resource_version.as_deref())?,
        next: list.metadata.next.filter(|token| !token.is_empty()).map(Cow::into_owned),
        item_count: items.len(),
        volumes,
    })
}

fn read_failure(line: &[u8]) -> Result<ApiError, ApiError> {
    let failure: WireFailure =
        serde_json::from_slice(line).map_err(|_| ApiError::Undecodable { what: "an ERROR event" })?;
    let code = failure.object.code.unwrap_or(500);
    Ok(ApiError::from_status(code, None, &failure.object))
}

fn parse_revision(resource_version: Option<&str>) -> Result<u64, ApiError> {
    resource_version
        .and_then(|text| text.parse().ok())
        .ok_or(ApiError::Undecodable { what: "a resourceVersion" })
}

impl WireObject<'_> {
    fn volume(&self, driver_name: &str) -> Result<Volume, ApiError> {
        let metadata =
            self.metadata.as_ref().ok_or(ApiError::Undecodable { what: "the metadata of a volume" })?;
        let uid = metadata.uid.as_deref().filter(|uid| !uid.is_empty());
        let uid = uid.ok_or(ApiError::Undecodable { what: "the uid of a volume" })?.to_owned();
        let spec = self.spec.as_ref().ok_or(ApiError::Undecodable { what: "the spec of a volume" })?;
        Ok(Volume { uid, handle: spec.handle(driver_name)? })
    }

    fn revision(&self) -> Result<u64, ApiError> {
        parse_revision(self.metadata.as_ref().and_then(|metadata| metadata.resource_version.as_deref()))
    }

    fn ends_initial_events(&self) -> bool {
        let annotations = self.metadata.as_ref().and_then(|metadata| metadata.annotations.as_ref());
        annotations.and_then(|annotations| annotations.initial_events_end.as_deref()) == Some("true")
    }
}

impl WireSpec<'_> {
    fn handle(&self, driver_name: &str) -> Result<Option<Handle>, ApiError> {
        let Some(csi) = self.csi.as_ref().filter(|csi| csi.driver == driver_name) else { return Ok(None) };
        let handle = csi.volume_handle.as_deref();
        let handle = handle.ok_or(ApiError::Undecodable { what: "the handle of a volume of this driver" })?;
        Ok(Handle::parse(handle).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVER: &str = "per-node.liken.sh";

    fn object(csi: &str) -> String {
        format!(
            r#"{{"kind":"PersistentVolume","metadata":{{"name":"pv","uid":"u","resourceVersion":"7","annotations":{{"a":"b"}}}},"spec":{{"capacity":{{"storage":"1Gi"}},{csi}}},"status":{{"phase":"Bound"}}}}"#
        )
    }

    fn ours(handle: &str) -> String {
        object(&format!(r#""csi":{{"driver":"{DRIVER}","volumeHandle":"{handle}"}}"#))
    }

    fn event(kind: &str, object: &str) -> Result<WatchEvent, ApiError> {
        read_event(format!(r#"{{"type":"{kind}","object":{object}}}"#).as_bytes(), DRIVER)
    }

    fn volume(handle: Option<&str>) -> Volume {
        Volume { uid: "u".into(), handle: handle.map(|handle| Handle::parse(handle).expect("a handle")) }
    }

    #[test]
    fn events_are_read_with_their_revision() {
        let revision = 7;
        assert_eq!(event("ADDED", &ours("a")), Ok(WatchEvent::Named { volume: volume(Some("a")), revision }));
        assert_eq!(
            event("MODIFIED", &ours("a")),
            Ok(WatchEvent::Named { volume: volume(Some("a")), revision })
        );
        assert_eq!(
            event("DELETED", &ours("a")),
            Ok(WatchEvent::Deleted { volume: volume(Some("a")), revision })
        );
    }

    #[test]
    fn c48_of_other_drivers_no_handle_is_kept() {
        let revision = 7;
        for csi in
            [r#""csi":{"driver":"other","volumeHandle":"a"}"#, r#""hostPath":{"path":"/"}"#, r#""csi":null"#]
        {
            let expected = WatchEvent::Named { volume: volume(None), revision };
            assert_eq!(event("ADDED", &object(csi)), Ok(expected), "{csi}");
        }
    }

    #[test]
    fn c03_a_handle_that_is_none_names_nothing() {
        let expected = WatchEvent::Named { volume: volume(None), revision: 7 };
        assert_eq!(event("ADDED", &ours("../etc")), Ok(expected));
    }

    #[test]
    fn bookmarks_say_whether_the_initial_events_are_over() {
        let bookmark = r#"{"metadata":{"resourceVersion":"9","creationTimestamp":null},"spec":{}}"#;
        let end =
            r#"{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}"#;
        let expected = |ends_initial_events| Ok(WatchEvent::Bookmark { revision: 9, ends_initial_events });
        assert_eq!(event("BOOKMARK", bookmark), expected(false));
        assert_eq!(event("BOOKMARK", end), expected(true));
    }

    #[test]
    fn an_error_event_has_the_class_of_its_status() {
        let status = r#"{"kind":"Status","metadata":{},"code":410,"reason":"Expired"}"#;
        assert_eq!(event("ERROR", status), Ok(WatchEvent::Failed(ApiError::Gone)));
        assert_eq!(event("ERROR", "{}"), Ok(WatchEvent::Failed(ApiError::Server { code: 500 })));
    }

    #[test]
    fn c22_what_cannot_be_read_is_undecodable() {
        let no_uid = r#"{"metadata":{"name":"pv","resourceVersion":"7"},"spec":{}}"#;
        let no_spec = r#"{"metadata":{"name":"pv","uid":"u","resourceVersion":"7"}}"#;
        let no_revision = r#"{"metadata":{"name":"pv","uid":"u"},"spec":{}}"#;
        let no_handle = object(&format!(r#""csi":{{"driver":"{DRIVER}"}}"#));
        let no_driver = object(r#""csi":{"volumeHandle":"a"}"#);
        for object in [no_uid, no_spec, no_revision, &no_handle, &no_driver, "null", "7", "{\"metadata\":"] {
            let read = event("ADDED", object);
            assert!(matches!(read, Err(ApiError::Undecodable { .. })), "{object}: {read:?}");
        }
        assert!(matches!(event("RENAMED", &ours("a")), Err(ApiError::Undecodable { .. })));
    }

    #[test]
    fn a_page_counts_all_and_keeps_ours() {
        let other = object(r#""nfs":{"server":"s","path":"/"}"#);
        let page = |metadata: &str, items: &str| {
            read_page(format!(r#"{{"metadata":{metadata},"items":{items}}}"#).as_bytes(), DRIVER)
        };
        let items = format!("[{other},{},{other}]", ours("a"));
        let read = page(r#"{"resourceVersion":"12","continue":"t","remainingItemCount":4}"#, &items);
        let volumes = vec![volume(Some("a"))];
        assert_eq!(read, Ok(Page { revision: 12, next: Some("t".into()), item_count: 3, volumes }));
        let empty = Ok(Page { revision: 12, next: None, item_count: 0, volumes: vec![] });
        assert_eq!(page(r#"{"resourceVersion":"12","continue":""}"#, "null"), empty);
        assert!(page("{}", "[]").is_err(), "a list without a revision proves nothing");
        let status = br#"{"kind":"Status","metadata":{"resourceVersion":"12"},"status":"Success"}"#;
        assert!(read_page(status, DRIVER).is_err(), "what has no items is no empty list (C22)");
        assert!(
            page(r#"{"resourceVersion":"12"}"#, "[{}]").is_err(),
            "an undecodable object spoils the page"
        );
    }
}
