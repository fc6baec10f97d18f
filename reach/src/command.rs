//! A command that is run for its answer, and never waited for longer than it may take.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// No answer that is read here is longer; a longer one is refused, not cut.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// Why a command gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// It can't be run.
    #[error("cannot run {}", program.display())]
    Start {
        /// Which.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It took too long and was ended.
    #[error("{} gave no answer in {} ms", program.display(), timeout.as_millis())]
    TimedOut {
        /// Which.
        program: PathBuf,
        /// How long it was waited for.
        timeout: Duration,
    },
    /// It ended with an error.
    #[error("{} failed: {message}", program.display())]
    Failed {
        /// Which.
        program: PathBuf,
        /// Its first words on standard error.
        message: String,
    },
    /// Its answer is no text, or longer than any answer should be.
    #[error("{} gave an answer that can't be read", program.display())]
    Unreadable {
        /// Which.
        program: PathBuf,
    },
}

/// What a command wrote on standard output. Errors: it can't be run, takes longer than `timeout`, or fails.
pub fn run(
    program: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
    timeout: Duration,
) -> Result<String, CommandError> {
    let named = || program.to_owned();
    let mut child = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| CommandError::Start { program: named(), source })?;
    // Read beside the waiting: a full pipe would keep the command from ending.
    let (send, answers) = mpsc::channel();
    let readers: [(bool, Option<Box<dyn Read + Send>>); 2] = [
        (true, child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
        (false, child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>)),
    ];
    for (is_answer, pipe) in readers {
        let (send, mut pipe) = (send.clone(), pipe.expect("piped above").take(MOST_BYTES + 1));
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = pipe.read_to_end(&mut bytes);
            // Nobody listens any more where the command took too long.
            let _ = send.send((is_answer, read.map(|_| bytes)));
        });
    }
    let deadline = Instant::now() + timeout;
    let (mut answer, mut words) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let left = deadline.saturating_duration_since(Instant::now());
        match answers.recv_timeout(left) {
            Ok((true, Ok(bytes))) => answer = bytes,
            Ok((false, Ok(bytes))) => words = bytes,
            Ok((_, Err(source))) => return Err(CommandError::Start { program: named(), source }),
            Err(_) => {
                // It may have ended this moment; either way it is gone and waited for.
                let _ = child.kill();
                let _ = child.wait();
                return Err(CommandError::TimedOut { program: named(), timeout });
            }
        }
    }
    let ended = loop {
        match child.try_wait().map_err(|source| CommandError::Start { program: named(), source })? {
            Some(status) => break status,
            None if Instant::now() >= deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(CommandError::TimedOut { program: named(), timeout });
            }
            // It has closed both pipes: it is about to end.
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    if !ended.success() {
        let message = String::from_utf8_lossy(&words).lines().next().unwrap_or_default().chars().take(200).collect();
        return Err(CommandError::Failed { program: named(), message });
    }
    if answer.len() as u64 > MOST_BYTES {
        return Err(CommandError::Unreadable { program: named() });
    }
    // A job's comment may hold bytes of any encoding; they don't spoil the rest.
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout_ms: u64) -> Result<String, CommandError> {
        run(Path::new("/bin/sh"), &["-c", script], &[("GIVEN", "x")], Duration::from_millis(timeout_ms))
    }

    #[test]
    fn an_answer_is_all_that_a_command_wrote() {
        assert_eq!(shell("printf \"$GIVEN\"; head -c 300000 /dev/zero | tr '\\0' a", 20_000).unwrap().len(), 300_001);
    }

    #[test]
    fn a_command_that_hangs_fails_or_is_not_there_says_so() {
        assert!(matches!(shell("sleep 60", 50), Err(CommandError::TimedOut { .. })));
        // The pipe stays open in a child of the command; the command itself isn't waited for longer.
        assert!(matches!(shell("sleep 60 & sleep 60", 50), Err(CommandError::TimedOut { .. })));
        let failed = shell("echo slurm_load_jobs error: Unable to contact slurm controller >&2; exit 1", 20_000);
        assert!(failed.unwrap_err().to_string().contains("Unable to contact"));
        let missing = run(Path::new("/nonexistent/squeue"), &[], &[], Duration::from_secs(1));
        assert!(matches!(missing, Err(CommandError::Start { .. })));
    }
}
