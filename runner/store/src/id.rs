//! Names of session directories, and finding one by the beginning of its id.

use std::io;
use std::path::Path;

use crate::disk::Disk;
use crate::error::StoreError;

/// Longer names are not ids.
pub const ID_BYTES_MAX: usize = 64;

/// Ids become directory names, so nothing that a path could mean is in them.
pub(crate) fn is_id(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    !text.is_empty() && text.len() <= ID_BYTES_MAX && text.bytes().all(plain)
}

pub(crate) fn check(id: &str) -> Result<(), StoreError> {
    if is_id(id) {
        Ok(())
    } else {
        Err(StoreError::BadId {
            id: id.escape_default().take(ID_BYTES_MAX).collect(),
        })
    }
}

/// Every directory below the root that bears an id, in no order.
pub(crate) fn all(disk: &dyn Disk, root: &Path) -> Result<Vec<String>, StoreError> {
    let names = match disk.names(root) {
        Ok(names) => names,
        // Nothing was stored yet.
        Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(StoreError::io("list", root)(e)),
    };
    Ok(names.into_iter().filter(|name| is_id(name)).collect())
}

/// The one session that `text` names: its id, or the beginning of no other.
pub(crate) fn resolve(disk: &dyn Disk, root: &Path, text: &str) -> Result<String, StoreError> {
    check(text)?;
    if disk.kind(&root.join(text)).is_ok() {
        return Ok(text.to_owned());
    }
    let mut ids = all(disk, root)?;
    ids.retain(|id| id.starts_with(text));
    ids.sort();
    match ids.len() {
        0 => Err(StoreError::NotFound {
            id: text.to_owned(),
            root: root.to_owned(),
        }),
        1 => Ok(ids.remove(0)),
        _ => Err(StoreError::Ambiguous {
            prefix: text.to_owned(),
            ids,
        }),
    }
}
