//! Errors of the file tools, as the model reads them.

use std::path::Path;

use rustix::io::Errno;

use crate::protocol::{ErrorCode, ToolError};

/// A tool error on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault(pub ToolError);

impl Fault {
    pub fn new(code: ErrorCode, op: &str, path: &Path, text: impl Into<String>) -> Fault {
        Fault(ToolError {
            code,
            op: op.to_owned(),
            path: Some(path.to_string_lossy().into_owned()),
            errno: None,
            text: text.into(),
        })
    }

    /// What the kernel said to `op` on `path`.
    pub fn kernel(op: &str, path: &Path, errno: Errno) -> Fault {
        let shown = path.display();
        let (code, text) = match errno {
            Errno::NOENT => (ErrorCode::NotFound, format!("{shown} does not exist")),
            Errno::NOTDIR => (
                ErrorCode::NotADirectory,
                format!("a part of {shown} is not a directory"),
            ),
            Errno::ISDIR => (ErrorCode::NotAFile, format!("{shown} is a directory")),
            // A socket, or a FIFO nobody reads.
            Errno::NXIO | Errno::NODEV => {
                (ErrorCode::NotAFile, format!("{shown} is no regular file"))
            }
            Errno::NAMETOOLONG | Errno::LOOP | Errno::INVAL => {
                (ErrorCode::BadRequest, format!("{shown}: {errno}"))
            }
            Errno::FBIG => (ErrorCode::TooLarge, format!("{shown} would be too large")),
            errno if is_denial(errno) => (
                ErrorCode::Denied,
                format!("{op} {shown}: {errno}. Neither the sandbox nor a retry will allow it"),
            ),
            errno => (ErrorCode::Io, format!("{op} {shown}: {errno}")),
        };
        let mut fault = Fault::new(code, op, path, text);
        fault.0.errno = Some(errno.raw_os_error());
        fault
    }

    /// As [`Fault::kernel`], for errors of the standard library.
    pub fn io(op: &str, path: &Path, error: &std::io::Error) -> Fault {
        match Errno::from_io_error(error) {
            Some(errno) => Fault::kernel(op, path, errno),
            None => Fault::new(
                ErrorCode::Io,
                op,
                path,
                format!("{op} {}: {error}", path.display()),
            ),
        }
    }
}

pub(crate) fn bad_request(text: impl Into<String>) -> Fault {
    Fault(ToolError {
        code: ErrorCode::BadRequest,
        op: "request".to_owned(),
        path: None,
        errno: None,
        text: text.into(),
    })
}

/// Errors by which a sandbox refuses. EBUSY is how a pinned name answers a rename, EXDEV how
/// Landlock answers one across directories it does not let files leave.
fn is_denial(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::XDEV | Errno::BUSY
    )
}
