//! The API server, asked about the pods of this node.
//!
//! One list and then one watch of the pods bound to this node, read when the collector looks: between looks events wait in the socket. A plain
//! list each half minute would have been less to write, but tells too late that a pod is over or that another has its name, and a thousand
//! nodes that list more often are a load that the server feels; a watch costs it next to nothing. The crate `kube` would bring its own runtime
//! of tasks, a client stack of a hundred crates and all of Kubernetes' types, into a daemon that may have 20 MiB; of all that, two paths and
//! a dozen fields are needed. So it is hyper over a socket, and the list is read as it comes in, pod by pod.

mod connection;
mod list;

pub use connection::ApiAddress;

use super::pod::ToldPod;
use super::pod_cache::PodCache;
use super::resource_slices::{PublishedDevices, SliceJson};
use cardhour_domain::Name;
use connection::Reply;
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// How the API server is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiSettings {
    /// Where it is.
    pub address: ApiAddress,
    /// How long an answer may take to begin, and each piece of it to come.
    pub timeout: Duration,
    /// How long to wait for more of a watch at a look. Whatever comes later is read at the next.
    pub settle: Duration,
    /// A watch that is silent for longer is made anew: its connection may be dead. The server sends a bookmark about each minute.
    pub longest_silence: Duration,
    /// How long not to ask after a failure.
    pub retry_after: Duration,
}

impl ApiSettings {
    /// The settings that fit a cluster.
    pub fn new(address: ApiAddress) -> Self {
        Self {
            address,
            timeout: Duration::from_secs(5),
            settle: Duration::from_millis(20),
            longest_silence: Duration::from_secs(150),
            retry_after: Duration::from_secs(20),
        }
    }
}

/// Why the API server told nothing.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// It can't be reached.
    #[error("cannot reach the API server at {at}")]
    Unreachable {
        /// Where.
        at: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It didn't answer in time.
    #[error("the API server did not answer {path} within {after:?}")]
    TimedOut {
        /// What was asked.
        path: String,
        /// How long it was waited.
        after: Duration,
    },
    /// It won't: 401 without a valid token, 403 without the right, 404 where it doesn't know such things.
    #[error("the API server answered {path} with status {status}")]
    Refused {
        /// What was asked.
        path: String,
        /// What it answered.
        status: u16,
    },
    /// What it sent can't be read.
    #[error("cannot read the answer to {path}")]
    Unreadable {
        /// What was asked.
        path: String,
        /// Why.
        source: serde_json::Error,
    },
    /// A file with the token or the certificates can't be used.
    #[error("cannot use {}", path.display())]
    Credentials {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Its watches end as soon as they begin.
    #[error("the API server ends each watch at once")]
    WatchEnds,
    /// It failed a moment ago, and isn't asked again yet.
    #[error("not asked again yet")]
    BackingOff,
}

impl ApiError {
    /// Whether it forgot the version that was asked from.
    fn is_expired(&self) -> bool {
        matches!(self, Self::Refused { status: 410, .. })
    }
}

/// Asks the API server, from one thread, which it blocks for at most a few timeouts.
#[derive(Debug)]
pub struct ApiServer {
    runtime: Runtime,
    settings: ApiSettings,
    node: Name,
    watch: Option<Watch>,
    version: Option<String>,
    not_before: Option<Instant>,
    slices_version: Option<&'static str>,
}

/// A watch that goes on.
#[derive(Debug)]
struct Watch {
    reply: Reply,
    unread: Vec<u8>,
    last_heard: Instant,
}

/// What a watch has come to.
enum Watched {
    /// Nothing more for now.
    Settled,
    /// It ended, as watches do.
    Ended,
    /// The server forgot what it had told.
    Expired,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: BookmarkMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BookmarkMetadata {
    resource_version: String,
}

impl ApiServer {
    /// For a node's pods. Errors: no more file descriptors.
    pub fn new(settings: ApiSettings, node: Name) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, settings, node, watch: None, version: None, not_before: None, slices_version: None })
    }

    /// Brings the cache up to date. After an error the cache is as old as it was.
    pub fn refresh(&mut self, cache: &mut PodCache) -> Result<(), ApiError> {
        if self.not_before.is_some_and(|moment| Instant::now() < moment) {
            return Err(ApiError::BackingOff);
        }
        let refreshed = self.follow(cache);
        self.not_before = refreshed.is_err().then(|| Instant::now() + self.settings.retry_after);
        refreshed
    }

    /// Lists where there is no version to go on from, watches where there is no watch, and reads what the watch has. An end and an expiry
    /// are ordinary, so it is tried again; but not for ever.
    fn follow(&mut self, cache: &mut PodCache) -> Result<(), ApiError> {
        for _ in 0..3 {
            let is_silent = |watch: &Watch| watch.last_heard.elapsed() > self.settings.longest_silence;
            if self.watch.as_ref().is_some_and(is_silent) {
                self.watch = None;
            }
            if self.watch.is_none() {
                match self.open(cache) {
                    Err(error) if error.is_expired() => {
                        self.version = None;
                        continue;
                    }
                    opened => opened?,
                }
            }
            match self.read_watch(cache)? {
                Watched::Settled => return Ok(()),
                Watched::Ended => self.watch = None,
                Watched::Expired => (self.watch, self.version) = (None, None),
            }
        }
        Err(ApiError::WatchEnds)
    }

    /// Opens a watch from the version that is known, else from a list.
    fn open(&mut self, cache: &mut PodCache) -> Result<(), ApiError> {
        let pods = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", self.node);
        let version = match &self.version {
            Some(version) => version.clone(),
            None => {
                let (version, items) = self.list::<ToldPod>(&pods)?;
                cache.replace(items);
                self.version.insert(version).clone()
            }
        };
        let path = format!("{pods}&watch=1&allowWatchBookmarks=true&resourceVersion={version}");
        let reply = self.runtime.block_on(connection::get(&self.settings, &path))?;
        self.watch = Some(Watch { reply, unread: Vec::new(), last_heard: Instant::now() });
        Ok(())
    }

    /// Takes in what has come, until no more comes.
    fn read_watch(&mut self, cache: &mut PodCache) -> Result<Watched, ApiError> {
        let Some(watch) = &mut self.watch else { return Ok(Watched::Ended) };
        loop {
            let settle = self.settings.settle;
            let frame = self.runtime.block_on(async { tokio::time::timeout(settle, watch.reply.body.frame()).await });
            let data = match frame {
                Err(_) => return Ok(Watched::Settled),
                Ok(None | Some(Err(_))) => return Ok(Watched::Ended),
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            watch.last_heard = Instant::now();
            watch.unread.extend_from_slice(&data);
            while let Some(end) = watch.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = watch.unread.drain(..=end).collect();
                let unreadable = |source| ApiError::Unreadable { path: "a watch of pods".into(), source };
                match take_in(&line, cache) {
                    Ok(Some(version)) => self.version = Some(version),
                    Ok(None) => return Ok(Watched::Expired),
                    Err(error) => {
                        (self.watch, self.version) = (None, None);
                        return Err(unreadable(error));
                    }
                }
            }
        }
    }

    /// Devices of claims, as drivers publish them of this node.
    pub fn published_devices(&mut self) -> Result<PublishedDevices, ApiError> {
        let versions = match self.slices_version {
            Some(known) => vec![known],
            None => vec!["v1", "v1beta2", "v1beta1"],
        };
        let mut last = None;
        for version in versions {
            let group = format!("/apis/resource.k8s.io/{version}");
            let path = format!("{group}/resourceslices?fieldSelector=spec.nodeName%3D{}", self.node);
            match self.list::<SliceJson>(&path) {
                Ok((_, slices)) => {
                    self.slices_version = Some(version);
                    return Ok(PublishedDevices::of(&slices));
                }
                Err(error @ ApiError::Refused { status: 404, .. }) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        // A server that was made newer or older knows another version.
        self.slices_version = None;
        Err(last.expect("at least one version was tried"))
    }

    /// A whole list and its version, in as many pages as the server makes of it. A page that expired is asked for from the start, once.
    fn list<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<(String, Vec<T>), ApiError> {
        match list::all(&self.runtime, &self.settings, path) {
            Err(error) if error.is_expired() => list::all(&self.runtime, &self.settings, path),
            listed => listed,
        }
    }
}

/// Takes an event in; its version, or none where the server forgot what it had told. Errors: it can't be read.
fn take_in(line: &[u8], cache: &mut PodCache) -> Result<Option<String>, serde_json::Error> {
    let event: Event<'_> = serde_json::from_slice(line)?;
    if event.kind == "BOOKMARK" {
        let bookmark: Bookmark = serde_json::from_str(event.object.get())?;
        return Ok(Some(bookmark.metadata.resource_version));
    }
    if event.kind == "ERROR" {
        return Ok(None);
    }
    let pod: ToldPod = serde_json::from_str(event.object.get())?;
    let version = pod.version.clone();
    match event.kind {
        "DELETED" => cache.remove(pod),
        _ => cache.put(pod),
    }
    Ok(Some(version))
}
