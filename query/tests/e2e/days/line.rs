//! The line between the node and the service: it passes requests on to wherever the service is now, and loses some of the answers.

use super::random::Random;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The line, from a port of its own.
pub struct Line {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    /// The service's port; 0 while it is away.
    service: AtomicU16,
    /// Whether it is as good as a line can be.
    is_sound: AtomicBool,
    told: Mutex<Told>,
    random: Mutex<Random>,
}

/// What went over the line.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Statuses that the service answered with, and how often.
    pub answers: BTreeMap<u16, u64>,
    /// Answers of the service that never arrived.
    pub lost_answers: u64,
    /// Requests that never arrived whole.
    pub cut_requests: u64,
    /// Segments that the service has, by its own words, whether they arrived or not.
    pub taken: BTreeMap<String, u64>,
}

impl Line {
    pub fn lay(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            service: AtomicU16::new(0),
            is_sound: AtomicBool::new(false),
            told: Mutex::default(),
            random: Mutex::new(Random(seed ^ 0x11E)),
        });
        let of_line = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = of_line.clone();
                std::thread::spawn(move || while pass(&stream, &shared).is_some() {});
            }
        });
        Self { port, shared }
    }

    /// Where the service is now; 0: away.
    pub fn leads_to(&self, port: u16) {
        self.shared.service.store(port, Ordering::Relaxed);
    }

    /// From now on nothing is lost.
    pub fn mend(&self) {
        self.shared.is_sound.store(true, Ordering::Relaxed);
    }

    pub fn told(&self) -> Told {
        self.shared.told.lock().unwrap().clone()
    }
}

/// Passes one request on, and its answer back. None: the connection is of no more use.
fn pass(client: &TcpStream, shared: &Shared) -> Option<()> {
    let mut reader = BufReader::new(client);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let field = |name: &str| {
        let of_name = |line: &&str| line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        head.lines().find(of_name).map(|line| line[name.len()..].trim().to_owned())
    };
    let length: usize = field("content-length:")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let segment = head.split(' ').nth(1)?.rsplit('/').next()?.to_owned();
    let port = shared.service.load(Ordering::Relaxed);
    let luck = if shared.is_sound.load(Ordering::Relaxed) { 99 } else { shared.random.lock().unwrap().within(0..100) };
    let passed = (port != 0).then(|| TcpStream::connect(("127.0.0.1", port)).ok()).flatten();
    let Some(mut service) = passed else {
        _ = client.shutdown(Shutdown::Both);
        return None;
    };
    // No answer at all is the end of a service that was killed; it doesn't hang longer than that.
    service.set_read_timeout(Some(Duration::from_secs(50))).ok()?;
    let kept = head.lines().filter(|line| {
        let line = line.to_ascii_lowercase();
        !line.is_empty() && !line.starts_with("host:") && !line.starts_with("connection:")
    });
    let mut request: String = kept.map(|line| format!("{line}\r\n")).collect();
    request.push_str(&format!("host: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"));
    let sent = if luck < 4 { body.len() / 2 } else { body.len() };
    let written = service.write_all(request.as_bytes()).and_then(|()| service.write_all(&body[..sent]));
    if luck < 4 {
        shared.told.lock().unwrap().cut_requests += 1;
        _ = client.shutdown(Shutdown::Both);
        return None;
    }
    let mut answer = Vec::new();
    let read = written.and_then(|()| service.read_to_end(&mut answer));
    let status: Option<u16> = std::str::from_utf8(answer.get(9..12).unwrap_or_default()).unwrap().parse().ok();
    let (Ok(_), Some(status)) = (read, status) else {
        _ = client.shutdown(Shutdown::Both);
        return None;
    };
    let is_lost = luck < 16;
    {
        let mut told = shared.told.lock().unwrap();
        *told.answers.entry(status).or_default() += 1;
        if matches!(status, 200 | 201) {
            *told.taken.entry(segment).or_default() += 1;
        }
        told.lost_answers += u64::from(is_lost);
    }
    if is_lost {
        _ = client.shutdown(Shutdown::Both);
        return None;
    }
    // The service ends its side after one; the node may go on with the next over the same connection, and learns so by its close.
    let mut client = client;
    client.write_all(&answer).ok()?;
    _ = client.shutdown(Shutdown::Both);
    None
}
