//! Bytes too long or too raw for a line of the log: files below the session directory, named by
//! the SHA-256 of what they hold.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use curfew_engine::event::BlobRef;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::error::StoreError;

/// The most that one blob keeps of its source.
pub const BLOB_BYTES_MAX: u64 = 64 << 20;
/// The most that all blobs of a session may take.
pub const SESSION_BLOB_BYTES_MAX: u64 = 1 << 30;
/// The most that one read returns.
pub const BLOB_PAGE_BYTES_MAX: usize = 1 << 20;

const DIR_NAME: &str = "blobs";
const COPY_BYTES: usize = 64 << 10;

/// The blobs of one session. Clones share the account of what is used.
#[derive(Clone, Debug)]
pub struct Blobs {
    session: String,
    dir: PathBuf,
    /// Bytes taken; `None` until they were counted.
    used: Arc<Mutex<Option<u64>>>,
}

impl Blobs {
    pub(crate) fn new(session: &str, session_dir: &Path) -> Blobs {
        Blobs {
            session: session.to_owned(),
            dir: session_dir.join(DIR_NAME),
            used: Arc::default(),
        }
    }

    /// Keeps what the reader gives, at most [`BLOB_BYTES_MAX`] of it; durable when this returns,
    /// so that an event that names it never dangles. Reads on to the end of a longer source only
    /// as far as needed to know that it is longer.
    pub fn put(&self, source: &mut dyn Read) -> Result<BlobRef, StoreError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        self.make_dir()?;
        let taken = match *used {
            Some(bytes) => bytes,
            None => self.count()?,
        };
        let room = SESSION_BLOB_BYTES_MAX
            .saturating_sub(taken)
            .min(BLOB_BYTES_MAX);
        if room == 0 {
            return Err(StoreError::BlobsFull {
                id: self.session.clone(),
                max: SESSION_BLOB_BYTES_MAX,
            });
        }
        let (blob, new) = self.store(source, room)?;
        *used = Some(taken + if new { blob.bytes } else { 0 });
        Ok(blob)
    }

    pub fn put_bytes(&self, mut bytes: &[u8]) -> Result<BlobRef, StoreError> {
        self.put(&mut bytes)
    }

    /// At most `bytes` from `offset`, fewer at the end, none beyond it.
    pub fn read(&self, sha256: &str, offset: u64, bytes: usize) -> Result<Vec<u8>, StoreError> {
        let (file, path) = self.open(sha256)?;
        let mut page = vec![0; bytes.min(BLOB_PAGE_BYTES_MAX)];
        let mut filled = 0;
        while filled < page.len() {
            match file.read_at(&mut page[filled..], offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(StoreError::io("read", &path)(e)),
            }
        }
        page.truncate(filled);
        Ok(page)
    }

    pub fn size(&self, sha256: &str) -> Result<u64, StoreError> {
        let (file, path) = self.open(sha256)?;
        Ok(file
            .metadata()
            .map_err(StoreError::io("look at", &path))?
            .len())
    }

    /// Reads all of it and compares with its name.
    pub fn verify(&self, sha256: &str) -> Result<(), StoreError> {
        let (mut file, path) = self.open(sha256)?;
        let copied = copy_hashed(&mut file, &mut io::sink(), u64::MAX);
        let found = copied
            .map_err(|(e, _)| StoreError::io("read", &path)(e))?
            .sha256;
        if found == sha256 {
            Ok(())
        } else {
            Err(StoreError::BlobDamaged { path, found })
        }
    }

    fn open(&self, sha256: &str) -> Result<(File, PathBuf), StoreError> {
        let missing = || StoreError::NoBlob {
            id: self.session.clone(),
            sha256: sha256.to_owned(),
        };
        // Only a name that `put` could have made is ever joined to a path.
        if sha256.len() != 64
            || !sha256
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        {
            return Err(missing());
        }
        let path = self.dir.join(sha256);
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
        match OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&path)
        {
            Ok(file) => Ok((file, path)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(missing()),
            Err(e) => Err(StoreError::io("open", &path)(e)),
        }
    }

    fn make_dir(&self) -> Result<(), StoreError> {
        match DirBuilder::new().mode(0o700).create(&self.dir) {
            Ok(()) => {
                let parent = self.dir.parent().unwrap_or(&self.dir);
                File::open(parent)
                    .and_then(|dir| dir.sync_all())
                    .map_err(StoreError::io("flush", parent))
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let meta = fs::symlink_metadata(&self.dir)
                    .map_err(StoreError::io("look at", &self.dir))?;
                if meta.is_dir() {
                    return Ok(());
                }
                let found = if meta.is_symlink() {
                    "a symbolic link"
                } else {
                    "something else"
                };
                Err(StoreError::NotOurs {
                    path: self.dir.clone(),
                    found,
                    wanted: "a directory",
                })
            }
            Err(e) => Err(StoreError::io("create", &self.dir)(e)),
        }
    }

    /// What the blobs that exist take.
    fn count(&self) -> Result<u64, StoreError> {
        let entries = fs::read_dir(&self.dir).map_err(StoreError::io("list", &self.dir))?;
        let mut bytes = 0;
        for entry in entries {
            let meta = entry
                .and_then(|entry| entry.metadata())
                .map_err(StoreError::io("list", &self.dir))?;
            bytes += meta.len();
        }
        Ok(bytes)
    }

    /// Copies into a hidden file and renames it to its hash. Says whether it is a new one.
    fn store(&self, source: &mut dyn Read, room: u64) -> Result<(BlobRef, bool), StoreError> {
        let mut temp = tempfile::Builder::new()
            .prefix(".new-")
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(&self.dir)
            .map_err(StoreError::io("create a file in", &self.dir))?;
        let copied = copy_hashed(source, &mut temp, room).map_err(|(e, side)| match side {
            Side::Source => StoreError::io("read the source of a blob for", &self.dir)(e),
            Side::Target => StoreError::io("write a blob in", &self.dir)(e),
        })?;
        let blob = BlobRef {
            sha256: copied.sha256,
            bytes: copied.bytes,
            cut: copied.cut,
        };
        let path = self.dir.join(&blob.sha256);
        temp.as_file()
            .sync_all()
            .map_err(StoreError::io("flush a blob in", &self.dir))?;
        let new = match temp.persist_noclobber(&path) {
            Ok(_) => true,
            Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(e) => return Err(StoreError::io("name a blob in", &self.dir)(e.error)),
        };
        if !new {
            // The same bytes once more; or a file that only bears their name.
            self.verify(&blob.sha256)?;
        }
        File::open(&self.dir)
            .and_then(|dir| dir.sync_all())
            .map_err(StoreError::io("flush", &self.dir))?;
        Ok((blob, new))
    }
}

struct Copied {
    sha256: String,
    bytes: u64,
    cut: bool,
}

enum Side {
    Source,
    Target,
}

fn copy_hashed(
    source: &mut dyn Read,
    target: &mut dyn Write,
    max: u64,
) -> Result<Copied, (io::Error, Side)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; COPY_BYTES];
    let mut bytes = 0_u64;
    loop {
        let read = match source.read(&mut buffer) {
            Ok(0) => {
                return Ok(Copied {
                    sha256: hex(&hasher.finalize()),
                    bytes,
                    cut: false,
                });
            }
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err((e, Side::Source)),
        };
        let kept = read.min(usize::try_from(max - bytes).unwrap_or(usize::MAX));
        hasher.update(&buffer[..kept]);
        target
            .write_all(&buffer[..kept])
            .map_err(|e| (e, Side::Target))?;
        bytes += kept as u64;
        if kept < read {
            return Ok(Copied {
                sha256: hex(&hasher.finalize()),
                bytes,
                cut: true,
            });
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value & 15)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}
