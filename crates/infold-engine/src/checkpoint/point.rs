//! Points whose files can be compared: a message, an event, a time, or the current directory.

use std::str::FromStr;

use infold_log::steer::Target;

use crate::step::target;

/// A point whose files can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePoint {
    /// The checkpoint at a point of the log.
    At(Target),
    /// The directory in its current state.
    Now,
}

/// Two points, such as `12..e30`; without a second one it is the current directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRange {
    /// The older one.
    pub from: FilePoint,
    /// The newer one.
    pub to: FilePoint,
}

impl FromStr for FilePoint {
    type Err = String;

    fn from_str(text: &str) -> Result<FilePoint, String> {
        match text {
            "now" => Ok(FilePoint::Now),
            text => target(text)
                .map(FilePoint::At)
                .map_err(|error| format!("{error}, and not `now`")),
        }
    }
}

impl FromStr for FileRange {
    type Err = String;

    fn from_str(text: &str) -> Result<FileRange, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, "now"));
        Ok(FileRange {
            from: from.parse()?,
            to: if to.is_empty() {
                FilePoint::Now
            } else {
                to.parse()?
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let read = |text: &str| text.parse::<FileRange>();
        let range = |from, to| Ok(FileRange { from, to });
        let message = |seq| FilePoint::At(Target::Message(seq));
        let event = |id| FilePoint::At(Target::Event(id));
        assert_eq!(read("12..e30"), range(message(12), event(30)));
        assert_eq!(read("12"), range(message(12), FilePoint::Now));
        assert_eq!(read("e3.."), range(event(3), FilePoint::Now));
        assert_eq!(read("now..3"), range(FilePoint::Now, message(3)));
        let time = FilePoint::At(Target::Time(86_400_000));
        assert_eq!(read("1970-01-02..now"), range(time, FilePoint::Now));
        assert!(read("..3").is_err() && read("x..3").is_err());
    }
}
