//! A service for tests: speaks HTTP over a socket, and keeps segments by their names.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

/// What the service does with a request.
pub(super) enum Reply {
    /// Keeps the segment, and says whether it knew it.
    Keep,
    /// Keeps the segment; the answer is lost.
    KeepAndHangUp,
    /// Status, further header lines, body.
    Say(u16, &'static str, &'static str),
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// By its name in small letters.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Seen {
    requests: Vec<Request>,
    kept: HashMap<String, Vec<u8>>,
}

pub(super) struct TestService {
    pub(super) url: String,
    seen: Arc<Mutex<Seen>>,
}

type Script = dyn Fn(&Request, usize) -> Reply + Send + Sync;

impl TestService {
    /// `script` is asked for each request, with how many there were before.
    pub(super) fn start(script: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, Box::new(script))
    }

    pub(super) fn start_tls(script: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Self {
        let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/delivery/tests/certificates");
        let chain = CertificateDer::pem_file_iter(certificates.join("service.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(certificates.join("service.key")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain.map(Result::unwrap).collect(), key)
            .unwrap();
        Self::start_with(Some(Arc::new(config)), Box::new(script))
    }

    fn start_with(tls: Option<Arc<ServerConfig>>, script: Box<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let url = match tls {
            Some(_) => format!("https://localhost:{port}"),
            None => format!("http://127.0.0.1:{port}"),
        };
        let shared = seen.clone();
        // Ends with the test's process.
        let script: Arc<Script> = script.into();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let Ok(socket) = socket else { continue };
                let (tls, shared, script) = (tls.clone(), shared.clone(), script.clone());
                // Each by itself: one that stays open keeps no other waiting.
                thread::spawn(move || match tls {
                    None => serve(BufReader::new(socket), &shared, &*script),
                    Some(config) => {
                        let connection = ServerConnection::new(config).unwrap();
                        serve(BufReader::new(StreamOwned::new(connection, socket)), &shared, &*script);
                    }
                });
            }
        });
        Self { url, seen }
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().requests.clone()
    }

    /// How many segments it has.
    pub(super) fn kept(&self) -> usize {
        self.seen.lock().unwrap().kept.len()
    }
}

/// Answers the requests of one connection until either side hangs up.
fn serve<S: Read + Write>(mut socket: BufReader<S>, seen: &Mutex<Seen>, script: &Script) {
    while let Some(request) = read_request(&mut socket) {
        let mut seen = seen.lock().unwrap();
        let reply = script(&request, seen.requests.len());
        seen.requests.push(request.clone());
        let (status, headers, body) = match reply {
            Reply::Say(status, headers, body) => (status, headers, body),
            Reply::Keep | Reply::KeepAndHangUp => {
                let before = seen.kept.insert(request.path, request.body.clone());
                assert!(before.as_ref().is_none_or(|before| *before == request.body), "a name has one content");
                match (reply, before) {
                    (Reply::KeepAndHangUp, _) => return,
                    (_, None) => (201, "", r#"{"outcome": "taken"}"#),
                    (_, Some(_)) => (200, "", r#"{"outcome": "known"}"#),
                }
            }
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {status} Test\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
        if socket.get_mut().write_all(answer.as_bytes()).and_then(|()| socket.get_mut().flush()).is_err() {
            return;
        }
    }
}

fn read_request(socket: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    socket.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request { method, path, headers, body: Vec::new() };
    request.body = vec![0; request.header("content-length")?.parse().ok()?];
    socket.read_exact(&mut request.body).ok()?;
    Some(request)
}
