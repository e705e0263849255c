//! The files of the configuration: their places, and whether they are trusted.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use infold::Config;
use infold::config::{ConfigSource, ParsedConfig};

use super::trust;
use crate::error::{CliError, CliResult};

/// The name of a project's file and of the user's own.
pub const FILE_NAME: &str = "config.yaml";

/// The files that make up the configuration; later ones override earlier ones.
#[derive(Default)]
pub struct ConfigFiles {
    pub all: Vec<ConfigFile>,
    /// The project's file belongs to another program.
    pub is_foreign: bool,
    /// The reason that the project's file could not be read.
    pub unreadable: Option<String>,
}

/// A file that was read once: the bytes that are hashed are the bytes that are parsed.
pub struct ConfigFile {
    /// The name that messages show.
    pub name: String,
    pub text: String,
    pub trusted: bool,
    /// Device and inode, which identify the file.
    identity: (u64, u64),
}

impl ConfigFiles {
    /// Reads the named file, or else the user's own and the project's, as far as they exist.
    pub fn find(named: Option<&Path>) -> CliResult<ConfigFiles> {
        let mut files = ConfigFiles::default();
        if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
            // A file that the user names is trusted. It may be a pipe, or /dev/null.
            let source = File::open(path).and_then(|file| ConfigFile::read(path, file));
            files.all.push(source.map_err(unreadable(path))?);
            return Ok(files);
        }
        files.all.extend(ConfigFile::of_user()?);
        let path = Path::new(FILE_NAME);
        let project = match ConfigFile::open_regular(path) {
            Ok(project) => project,
            Err(error) if is_missing(&error) => return Ok(files),
            Err(error) => {
                files.unreadable = Some(format!(
                    "{FILE_NAME} could not be read and is ignored: {error}"
                ));
                return Ok(files);
            }
        };
        if project.is_among(&files.all) {
            return Ok(files);
        }
        let trusted = trust::is_trusted(path, project.text.as_bytes());
        if trusted || Config::is_ours(&project.text) {
            files.all.push(ConfigFile { trusted, ..project });
        } else {
            files.is_foreign = true;
        }
        Ok(files)
    }

    /// Parses the files.
    pub fn parse(&self) -> CliResult<ParsedConfig> {
        let parsed = Config::parse_layers(&self.layers(), &|name| std::env::var(name).ok());
        parsed.map_err(super::first_error)
    }

    /// Returns the files as layers for the library.
    pub fn layers(&self) -> Vec<ConfigSource<'_>> {
        self.all.iter().map(ConfigFile::layer).collect()
    }
}

impl ConfigFile {
    /// Reads the user's own file, if it exists.
    pub fn of_user() -> CliResult<Option<ConfigFile>> {
        let Some(dir) = user_directory("XDG_CONFIG_HOME", ".config") else {
            return Ok(None);
        };
        let path = dir.join(FILE_NAME);
        match ConfigFile::open_regular(&path) {
            Ok(source) => Ok(Some(source)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(unreadable(&path)(error)),
        }
    }

    /// Reads a regular file. Pipes and devices, which could block for ever, are refused.
    pub fn open_regular(path: &Path) -> io::Result<ConfigFile> {
        let regular = |is_file: bool| {
            if is_file {
                Ok(())
            } else {
                Err(io::Error::other("it is not a regular file"))
            }
        };
        // Opening a pipe blocks, so check before. Check again: the file may have been replaced.
        regular(std::fs::metadata(path)?.is_file())?;
        let file = File::open(path)?;
        regular(file.metadata()?.is_file())?;
        ConfigFile::read(path, file)
    }

    fn read(path: &Path, file: File) -> io::Result<ConfigFile> {
        /// One byte more than the library accepts.
        const MAX_FILE_BYTES: u64 = (1 << 20) + 1;
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            // The limit may cut a character in two.
            Err(error) if error.as_bytes().len() as u64 == MAX_FILE_BYTES => {
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
            Err(_) => {
                let what = "stream did not contain valid UTF-8";
                return Err(io::Error::new(ErrorKind::InvalidData, what));
            }
        };
        Ok(ConfigFile {
            name: path.display().to_string(),
            text,
            trusted: true,
            identity: (metadata.dev(), metadata.ino()),
        })
    }

    /// Returns whether one of these is the same file.
    pub fn is_among(&self, others: &[ConfigFile]) -> bool {
        others.iter().any(|other| other.identity == self.identity)
    }

    /// Returns the file as a layer for the library.
    pub fn layer(&self) -> ConfigSource<'_> {
        ConfigSource {
            file: &self.name,
            text: &self.text,
            trusted: self.trusted,
        }
    }
}

/// Returns Infold's directory in the one that a variable names, or in one of the home directory.
///
/// Relative paths are ignored: they would depend on the current directory.
pub fn user_directory(variable: &str, in_home: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(in_home)));
    base.map(|base| base.join("infold"))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Makes the error for a file that could not be read.
pub fn unreadable(path: &Path) -> impl Fn(io::Error) -> CliError {
    move |error| {
        let text = format!("{} could not be read: {error}", path.display());
        CliError::usage(text).hint("--config or INFOLD_CONFIG names the file; /dev/null means none")
    }
}
