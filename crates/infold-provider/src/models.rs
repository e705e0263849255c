use std::time::Duration;

use infold_wire::trouble::{Refused, message};
use infold_wire::{Delivery, Listed, Trouble, listed};
use reqwest::Url;
use tokio::time::timeout;

use crate::attempt::Attempt;
use crate::error::redacted;
use crate::{CallError, Client, Endpoint};

/// The longest list that is read.
const MOST_LIST: usize = 32 << 20;

/// Whoever asks for a list is waiting for it, and no model has to think.
const LONGEST: Duration = Duration::from_secs(30);

impl Client {
    /// Asks a provider which models it has. It is asked once.
    pub async fn models(&self, to: &Endpoint) -> Result<Vec<Listed>, CallError> {
        let mut places = to.lists().into_iter();
        let first = places.next();
        let mut found = match first {
            Some(place) => self.list(to, place).await,
            None => Ok(Vec::new()),
        };
        for place in places {
            // Only what is not there is looked for elsewhere, whatever is said of it.
            let absent = |error: &CallError| {
                let address = error.trouble == Trouble::Refused(Refused::Address);
                address || matches!(error.status, Some(404 | 405))
            };
            if !found.as_ref().is_err_and(absent) {
                break;
            }
            found = self.list(to, place).await;
        }
        found
    }

    async fn list(&self, to: &Endpoint, place: Url) -> Result<Vec<Listed>, CallError> {
        let attempt = Attempt {
            http: self.http(to)?,
            to,
            target: place.clone(),
            form: Delivery::Whole,
            idle: self.idle().min(LONGEST),
            until: self.until(),
        };
        let request = attempt.http.get(place).headers(to.headers()).send();
        let silent = || attempt.broken("did not answer in time");
        let answer = timeout(attempt.idle, request).await.map_err(|_| silent())?;
        let mut response = answer.map_err(|error| attempt.unreached(&error))?;
        if !response.status().is_success() {
            return Err(attempt.error(response).await);
        }
        let mut body = Vec::new();
        while let Some(bytes) = timeout(attempt.idle, response.chunk())
            .await
            .map_err(|_| silent())?
            .map_err(|error| attempt.unreached(&error))?
        {
            body.extend_from_slice(&bytes);
            if body.len() > MOST_LIST {
                break;
            }
        }
        listed(&body).ok_or_else(|| {
            let said = message(&body).unwrap_or_default();
            // Before it is cut: part of a key is still part of a key.
            let said: String = redacted(to, &said).chars().take(200).collect();
            attempt.odd(&format!("has no list of models there: {said}"))
        })
    }
}
