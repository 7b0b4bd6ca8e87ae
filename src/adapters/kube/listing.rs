//! A full, consistent list of the PersistentVolumes: streamed where the server can, else paged.
//!
//! What it answers holds for one revision that the server fixed after the list began (C22 (a), (b)): a streamed list with
//! an empty `resourceVersion` and a paged list without one are both answered from etcd's head. It never continues a list
//! that met 410 (what follows would not be consistent), never keeps more than a page or a line of other drivers' volumes
//! (C48), and never repeats a failed list: its callers do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::{Instant, timeout_at};

use crate::domain::handle::Handle;

use super::api_error::ApiError;
use super::lines::Lines;
use super::settings::{BROKEN_STREAMED_LISTS_MAX, PAGE_BYTES_MAX, PAGE_ITEMS_MAX, PAGES_MAX};
use super::transport::{Transport, query_escaped};
use super::volume::{Page, Volume, WatchEvent, read_event, read_page};

const VOLUMES: &str = "/api/v1/persistentvolumes";

/// What a full list found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The revision for which it holds.
    pub revision: u64,
    /// The handles of the volumes of this driver, by the volumes' UIDs.
    pub volumes: BTreeMap<String, Handle>,
    /// How many volumes of any driver there were.
    pub item_count: usize,
}

/// A list, and the stream it came from if that goes on as a watch.
pub struct Begun {
    /// The list.
    pub listing: Listing,
    /// The events after it. `None` where the list was paged.
    pub watch: Option<Lines>,
}

/// Lists PersistentVolumes.
pub struct Lister {
    transport: Transport,
    driver_name: String,
    /// Streamed lists that broke in a row; [`STREAM_REFUSED`] where the server does not know them.
    broken_streams: AtomicU32,
}

const STREAM_REFUSED: u32 = u32::MAX;

impl Lister {
    /// A lister of the volumes of `driver_name`.
    #[must_use]
    pub fn new(transport: Transport, driver_name: &str) -> Self {
        Self { transport, driver_name: driver_name.to_owned(), broken_streams: AtomicU32::new(0) }
    }

    /// A full list begun now.
    ///
    /// # Errors
    /// Any: then nothing is known.
    pub async fn full_list(&self) -> Result<Listing, ApiError> {
        self.list_for(self.transport.settings().list_timeout.as_secs()).await.map(|begun| begun.listing)
    }

    /// A full list begun now and, where it was streamed, the watch that follows it on the same connection for about
    /// `watch_seconds`.
    ///
    /// # Errors
    /// Any: then nothing is known.
    pub async fn list_for(&self, watch_seconds: u64) -> Result<Begun, ApiError> {
        let deadline = Instant::now() + self.transport.settings().list_timeout;
        let late = |_| ApiError::Timeout { waiting_for: "the end of a list" };
        if self.may_stream() {
            let opened = timeout_at(deadline, self.open_streamed(watch_seconds)).await.map_err(late)?;
            if let Some(lines) = opened? {
                let streamed =
                    timeout_at(deadline, self.read_initial(lines)).await.map_err(late).and_then(|read| read);
                self.count_stream(&streamed);
                return streamed;
            }
        }
        let listing = timeout_at(deadline, self.paged()).await.map_err(late)??;
        Ok(Begun { listing, watch: None })
    }

    /// The revision that the server's history has reached, by a consistent read of one object that begins now.
    ///
    /// # Errors
    /// Any: then nothing is known.
    pub async fn head(&self) -> Result<u64, ApiError> {
        let body = self.transport.get(&format!("{VOLUMES}?limit=1"), PAGE_BYTES_MAX).await?;
        Ok(read_page(&body, &self.driver_name)?.revision)
    }

    /// The watch that goes on from `revision`.
    ///
    /// # Errors
    /// `Gone` where the server no longer knows the revision: only a new list helps.
    pub async fn watch_from(&self, revision: u64, watch_seconds: u64) -> Result<Lines, ApiError> {
        let path = format!(
            "{VOLUMES}?watch=true&allowWatchBookmarks=true&resourceVersion={revision}&timeoutSeconds={watch_seconds}"
        );
        self.transport.stream(&path).await
    }

    /// The driver whose volumes are kept.
    #[must_use]
    pub fn driver_name(&self) -> &str {
        &self.driver_name
    }

    fn may_stream(&self) -> bool {
        self.broken_streams.load(Ordering::Relaxed) < BROKEN_STREAMED_LISTS_MAX
    }

    /// Remembers streams that were accepted and then broke, as something between here and the server may break each.
    fn count_stream(&self, streamed: &Result<Begun, ApiError>) {
        match streamed {
            Ok(_) => self.broken_streams.store(0, Ordering::Relaxed),
            Err(_) => {
                self.broken_streams.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Opens a streamed list, or answers `None` where the server refuses the kind and a paged list has to do.
    async fn open_streamed(&self, watch_seconds: u64) -> Result<Option<Lines>, ApiError> {
        let path = format!(
            "{VOLUMES}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true\
             &resourceVersionMatch=NotOlderThan&resourceVersion=&timeoutSeconds={watch_seconds}"
        );
        match self.transport.stream(&path).await {
            Ok(lines) => Ok(Some(lines)),
            // Servers before 1.27, and those with the feature off, call the parameters invalid.
            Err(ApiError::Refused { code: 400 | 422, .. }) => {
                self.broken_streams.store(STREAM_REFUSED, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads a streamed list up to the bookmark that ends it.
    async fn read_initial(&self, mut lines: Lines) -> Result<Begun, ApiError> {
        let mut volumes = BTreeMap::new();
        let mut item_count: usize = 0;
        loop {
            // A stream that ends in good order before that bookmark has not told everything.
            let line = lines.next().await?.ok_or(ApiError::Closed)?;
            match read_event(line, &self.driver_name)? {
                WatchEvent::Named { volume, .. } => {
                    item_count += 1;
                    keep(&mut volumes, volume);
                }
                WatchEvent::Deleted { volume, .. } => {
                    item_count = item_count.saturating_sub(1);
                    volumes.remove(&volume.uid);
                }
                WatchEvent::Bookmark { ends_initial_events: false, .. } => {}
                WatchEvent::Bookmark { revision, ends_initial_events: true } => {
                    let listing = Listing { revision, volumes, item_count };
                    return Ok(Begun { listing, watch: Some(lines) });
                }
                WatchEvent::Failed(error) => return Err(error),
            }
        }
    }

    async fn paged(&self) -> Result<Listing, ApiError> {
        let first = self.page(None).await?;
        let mut listing = Listing { revision: first.revision, volumes: BTreeMap::new(), item_count: 0 };
        let mut page = first;
        for _ in 0..PAGES_MAX {
            if page.revision != listing.revision {
                // The pages are not of one list: a proxy or a server has started another one.
                return Err(ApiError::Undecodable { what: "a list whose pages have several revisions" });
            }
            listing.item_count += page.item_count;
            page.volumes.into_iter().for_each(|volume| keep(&mut listing.volumes, volume));
            let Some(token) = page.next else { return Ok(listing) };
            page = self.page(Some(&token)).await?;
        }
        Err(ApiError::Undecodable { what: "a list without end" })
    }

    /// One page, of fewer objects where they are so large that the page would be.
    async fn page(&self, token: Option<&str>) -> Result<Page, ApiError> {
        let mut limit = PAGE_ITEMS_MAX;
        loop {
            let mut path = format!("{VOLUMES}?limit={limit}");
            if let Some(token) = token {
                path.push_str("&continue=");
                path.push_str(&query_escaped(token));
            }
            match self.transport.get(&path, PAGE_BYTES_MAX).await {
                Err(ApiError::Oversize { .. }) if limit > 1 => limit /= 2,
                body => return read_page(&body?, &self.driver_name),
            }
        }
    }
}

/// Keeps a volume of this driver; of another's nothing is kept (C48).
fn keep(volumes: &mut BTreeMap<String, Handle>, volume: Volume) {
    match volume.handle {
        Some(handle) => volumes.insert(volume.uid, handle),
        None => volumes.remove(&volume.uid),
    };
}
