//! Hand-written declarations of the C libraries that are measured, loaded at run time.
//!
//! They are loaded rather than linked so that building Quickbeam needs none of them. All unsafe
//! code of this crate is in this folder: each module wraps what one adapter needs in safe types,
//! and the adapters themselves contain none.

pub mod bdb;
pub mod duckdb;
pub mod libpq;
pub mod lmdb;
pub mod rocksdb;
pub mod sqlite;
pub mod wiredtiger;

use std::ffi::{OsStr, c_void};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use libloading::Library;

/// A pointer of a C library to one of its own structures.
pub type Handle = *mut c_void;

/// Where a library is looked for and what brings it.
pub struct Source {
    /// Environment variable that names another file to load.
    pub variable: &'static str,
    /// The file of a newer release in the folder where `newest-peers` puts it.
    pub newest: Option<&'static str>,
    /// File names in the order in which they are tried.
    pub files: &'static [&'static str],
    /// The Debian package that contains it.
    pub package: &'static str,
}

impl Source {
    /// Loads the library, or says what to install.
    pub fn load(&self) -> Result<Library> {
        if let Ok(file) = std::env::var(self.variable) {
            return open(&file).with_context(|| format!("{}={file}", self.variable));
        }
        let newest = self.newest.map(|file| cache("peers").join(file));
        if let Some(file) = newest.filter(|file| file.exists()) {
            return open(&file).with_context(|| file.display().to_string());
        }
        for file in self.files {
            if let Ok(library) = open(file) {
                return Ok(library);
            }
        }
        Err(anyhow!(
            "{} is not installed (Debian package {}; or name the file in {})",
            self.files[0],
            self.package,
            self.variable
        ))
    }
}

/// The release in the name of a loaded file, as in `7.8.3` of `librocksdb.so.7.8.3`.
fn loaded_release(prefix: &str) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines()
        .filter_map(|line| line.rsplit('/').next()?.strip_prefix(prefix))
        .next()
        .unwrap_or("unknown")
        .to_owned()
}

/// Returns the folder of that name in the user's cache, where `x` puts libraries.
fn cache(name: &str) -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    cache.unwrap_or_else(|| home.join(".cache")).join("quickbeam").join(name)
}

#[allow(unsafe_code)]
fn open(file: impl AsRef<OsStr>) -> Result<Library, libloading::Error> {
    // SAFETY: loading runs the library's initializers. These are published database libraries
    // whose initializers only set up their own state.
    unsafe { Library::new(file.as_ref()) }
}

/// Declares a struct of C functions and a loader that looks each of them up by name.
macro_rules! functions {
    ($(#[$meta:meta])* struct $name:ident { $($function:ident: fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)* }) => {
        $(#[$meta])*
        #[allow(non_snake_case)]
        struct $name {
            $($function: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            // Kept to the last field: the functions live as long as the library stays loaded.
            _library: libloading::Library,
        }

        impl $name {
            fn load(library: libloading::Library) -> anyhow::Result<Self> {
                // SAFETY: each type above is the declaration of that function in the library's
                // header, and the function pointers are dropped together with the library.
                unsafe {
                    Ok($name {
                        $($function: *library
                            .get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                                concat!(stringify!($function), "\0").as_bytes(),
                            )
                            .map_err(|e| anyhow::anyhow!("{e}"))?,)*
                        _library: library,
                    })
                }
            }
        }
    };
}
use functions;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_names_its_package() {
        let source = Source {
            variable: "QUICKBEAM_BENCH_NONE",
            newest: Some("libthere-is-none.so"),
            files: &["libthere-is-none.so.1"],
            package: "libthere1",
        };
        let message = source.load().unwrap_err().to_string();
        assert!(message.contains("libthere-is-none.so.1"), "{message}");
        assert!(message.contains("Debian package libthere1"), "{message}");
    }
}
