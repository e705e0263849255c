//! The same session folded once, as `infold fold` does it.

use infold::config::ProfileRequest;
use infold::profile::{Setting as ProfileSetting, Settings};
use infold::summarizer::Extractive;
use infold::{Aim, Config, Hooks, ManageError, Scratch, manage};
use infold_log::{Size, View};

use super::record::Record;
use super::{Failure, Setting};

/// Returns the fold settings of one go: those of the proxy, with a model that counts tokens as we do.
pub fn aim(setting: &Setting<'_>, frame_tokens: u64) -> Result<Aim, Failure> {
    let resolved = Config::default().resolve(&ProfileRequest {
        model: Some(setting.model.to_owned()),
        profile: None,
        settings: Settings {
            window: Some(ProfileSetting::call(setting.window)),
            max_tokens: Some(ProfileSetting::call(setting.max_tokens)),
            ..Settings::default()
        },
    })?;
    Ok(Aim {
        factor: 1.0,
        frame: Size {
            tokens: frame_tokens,
            bytes: 0,
        },
        ..Aim::of(&resolved.profile, None)?
    })
}

/// Folds the messages before a place once, and returns the view; `None` if it does not fit.
pub fn fold(record: &Record, place: usize, aim: &Aim) -> Result<Option<Vec<Vec<u8>>>, Failure> {
    let mut task = Scratch::new()?;
    for message in &record.messages[..place] {
        task.push(message.bytes.clone())?;
    }
    match manage(task.writer()?, aim, &mut Extractive, &Hooks::default()) {
        Ok(_) => {}
        Err(ManageError::Floor { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let log = task.log();
    let view = View::of(log.state().shown(), log)?;
    let mut shown = Vec::new();
    log.render(&view, &mut |_, bytes| {
        shown.push(bytes.to_vec());
        Ok(())
    })?;
    Ok(Some(shown))
}
