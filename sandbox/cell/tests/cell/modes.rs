//! What this binary is when it is executed again.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use curfew_cell::broker;
use curfew_cell::frame::{Channel, Rights};
use curfew_cell::plan::Plan;
use curfew_cell::protocol::What;
use serde::{Deserialize, Serialize};

/// What the worker of these tests is asked.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Ask {
    /// Append to this file, then list own descriptors.
    Append { path: String },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Told {
    Appended {
        errno: i32,
        descriptors: Vec<String>,
        cwd: String,
    },
}

/// `None`: run the tests.
pub fn enter() -> Option<ExitCode> {
    let args: Vec<String> = std::env::args().collect();
    let code = match args.get(1).map(String::as_str)? {
        "__serve" => {
            let stdin = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
            let channel = Channel::new(UnixStream::from(stdin), Rights::Accepted);
            broker::serve(channel, worker)
        }
        "__one" => one(&args[2], &args[3..]),
        "__exec" => exec(&args[2..]),
        "__rows" => {
            println!(
                "{}",
                serde_json::to_string(&crate::plans::syscalls()).unwrap()
            );
            0
        }
        _ => return None,
    };
    Some(ExitCode::from(code as u8))
}

/// `curfew sandbox` in small: the plan in a file, the command as arguments.
fn one(plan: &str, argv: &[String]) -> i32 {
    let plan: Plan = serde_json::from_slice(&std::fs::read(plan).unwrap()).unwrap();
    let what = What::Command {
        argv: argv.to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: plan.workspace.clone(),
    };
    let stdio = [
        std::io::stdin().as_fd().try_clone_to_owned().unwrap(),
        std::io::stdout().as_fd().try_clone_to_owned().unwrap(),
        std::io::stderr().as_fd().try_clone_to_owned().unwrap(),
    ];
    match broker::run_one(&plan, what, stdio) {
        Ok((end, denials)) => {
            if std::env::var_os("SHOW").is_some() {
                eprintln!("{end:?}\n{denials:#?}");
            }
            end.exit_code
                .unwrap_or_else(|| 128 + end.signal.unwrap_or(0))
        }
        Err(fault) => {
            eprintln!("{fault:?}");
            125
        }
    }
}

/// The same process without a cell, as a baseline: spawn and wait.
fn exec(argv: &[String]) -> i32 {
    let status = std::process::Command::new(&argv[0])
        .args(&argv[1..])
        .status();
    status.unwrap().code().unwrap_or(1)
}

fn worker(socket: OwnedFd, cwd: &Path) -> i32 {
    let mut channel = Channel::from(socket);
    let Ok((Ask::Append { path }, _)) = channel.recv_json() else {
        return 9;
    };
    use std::io::Write;
    let errno = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(b"worker\n"))
        .err()
        .map_or(0, |e| e.raw_os_error().unwrap_or(-1));
    let mut descriptors: Vec<String> = std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect();
    descriptors.sort();
    let told = Told::Appended {
        errno,
        descriptors,
        cwd: format!(
            "{} {}",
            cwd.display(),
            std::env::current_dir().unwrap().display()
        ),
    };
    channel.send_json(&told, &[]).unwrap();
    3
}
