//! Which file a command's first word means, as execvp(3) would find it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[cfg(test)]
mod tests;

/// Why there is no program; a shell says 127 and 126.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error("{name}: command not found")]
    NotFound { name: String },
    #[error("{name}: not executable")]
    NotExecutable { name: String },
}

/// A name without a slash is looked for on the call's PATH, whose directories lie outside every
/// granted root; any other is left to the call itself, where the kernel judges it.
pub fn find(name: &str, env: &[(String, String)], cwd: &Path) -> Result<PathBuf, ProgramError> {
    if name.contains('/') {
        return Ok(cwd.join(name));
    }
    let path = env
        .iter()
        .find(|(key, _)| key == "PATH")
        .map_or("", |(_, path)| path.as_str());
    let mut denied = false;
    for directory in path
        .split(':')
        .map(Path::new)
        .filter(|directory| directory.is_absolute())
    {
        let candidate = directory.join(name);
        match std::fs::metadata(&candidate) {
            Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => {
                return Ok(candidate);
            }
            Ok(found) => denied |= found.is_file(),
            // Whatever else is wrong with this entry, the next one may be right (execvp(3)).
            Err(_) => {}
        }
    }
    let name = name.to_owned();
    Err(if denied {
        ProgramError::NotExecutable { name }
    } else {
        ProgramError::NotFound { name }
    })
}
