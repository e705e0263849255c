use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use infold::Config;
use infold::config::{Layer, ParsedConfig};

use super::trust;
use crate::failure::{Failure, Kind};

/// The name that a project's file has, and the user's own.
pub const FILE_NAME: &str = "config.yaml";

/// The files that make up the configuration, later ones over earlier ones.
#[derive(Default)]
pub struct Sources {
    pub files: Vec<Source>,
    /// The project's file belongs to another program.
    pub passed_over: bool,
    /// Why the project's file could not be read.
    pub unreadable: Option<String>,
}

/// One file, read once: the bytes that are hashed are those that are parsed.
pub struct Source {
    /// The name that messages show.
    pub name: String,
    pub text: String,
    pub trusted: bool,
    /// Device and inode, which tell whether two names are one file.
    identity: (u64, u64),
}

impl Sources {
    /// Finds and reads the files: the one that was named, or else the user's own and then the
    /// project's. A file may be missing unless it was named.
    pub fn find(named: Option<&Path>) -> Result<Sources, Failure> {
        let mut sources = Sources::default();
        if let Some(path) = named.filter(|path| !path.as_os_str().is_empty()) {
            // Whoever names a file trusts it. It may be a pipe, or /dev/null.
            let source = File::open(path).and_then(|file| Source::read(path, file));
            sources.files.push(source.map_err(unreadable(path))?);
            return Ok(sources);
        }
        sources.files.extend(Source::of_user()?);
        let path = Path::new(FILE_NAME);
        let project = match Source::open_regular(path) {
            Ok(project) => project,
            Err(error) if is_missing(&error) => return Ok(sources),
            Err(error) => {
                sources.unreadable = Some(format!(
                    "{FILE_NAME} could not be read and is ignored: {error}"
                ));
                return Ok(sources);
            }
        };
        if project.is_among(&sources.files) {
            return Ok(sources);
        }
        let trusted = trust::is_trusted(path, project.text.as_bytes());
        if trusted || Config::is_ours(&project.text) {
            sources.files.push(Source { trusted, ..project });
        } else {
            sources.passed_over = true;
        }
        Ok(sources)
    }

    /// Reads what the files say.
    pub fn parse(&self) -> Result<ParsedConfig, Failure> {
        let parsed = Config::parse_layers(&self.layers(), &|name| std::env::var(name).ok());
        parsed.map_err(super::first)
    }

    /// The files as the library takes them.
    pub fn layers(&self) -> Vec<Layer<'_>> {
        self.files.iter().map(Source::layer).collect()
    }
}

impl Source {
    /// The user's own file, if there is one.
    pub fn of_user() -> Result<Option<Source>, Failure> {
        let Some(dir) = user_directory("XDG_CONFIG_HOME", ".config") else {
            return Ok(None);
        };
        let path = dir.join(FILE_NAME);
        match Source::open_regular(&path) {
            Ok(source) => Ok(Some(source)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(unreadable(&path)(error)),
        }
    }

    /// Reads a file that nobody named, unless it is a pipe or a device, which could block for ever.
    pub fn open_regular(path: &Path) -> io::Result<Source> {
        let regular = |is_file: bool| match is_file {
            true => Ok(()),
            false => Err(io::Error::other("it is not a regular file")),
        };
        // Opening a pipe would block already. It could take the place of the file in between.
        regular(std::fs::metadata(path)?.is_file())?;
        let file = File::open(path)?;
        regular(file.metadata()?.is_file())?;
        Source::read(path, file)
    }

    fn read(path: &Path, file: File) -> io::Result<Source> {
        /// No configuration is longer: the library refuses what is.
        const MAX_FILE_BYTES: u64 = (1 << 20) + 1;
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            // The cut may be inside a character.
            Err(error) if error.as_bytes().len() as u64 == MAX_FILE_BYTES => {
                String::from_utf8_lossy(error.as_bytes()).into_owned()
            }
            Err(_) => {
                let what = "stream did not contain valid UTF-8";
                return Err(io::Error::new(ErrorKind::InvalidData, what));
            }
        };
        Ok(Source {
            name: path.display().to_string(),
            text,
            trusted: true,
            identity: (metadata.dev(), metadata.ino()),
        })
    }

    /// Whether one of these is the same file under any name.
    pub fn is_among(&self, others: &[Source]) -> bool {
        others.iter().any(|other| other.identity == self.identity)
    }

    pub fn layer(&self) -> Layer<'_> {
        Layer {
            file: &self.name,
            text: &self.text,
            trusted: self.trusted,
        }
    }
}

/// Infold's directory in the one that a variable names, or else in one of the home directory.
///
/// A relative path would lead into the current directory, which may be anybody's.
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

/// Says that a file that must be read could not be.
pub fn unreadable(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| {
        let text = format!("{} could not be read: {error}", path.display());
        Failure::new(Kind::Usage, text)
            .hint("--config or INFOLD_CONFIG names the file; /dev/null goes without")
    }
}
