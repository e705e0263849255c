use std::net::{IpAddr, Ipv4Addr};

use infold::config::{ConfigEntry, ProfileRequest, SERVED_APIS};
use infold::profile::{KeepRecent, Origin, Setting};
use infold::{Config, connect};
use infold_serve::Upstreams;
use infold_wire::Wire;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::serve::PORT;
use crate::settings::no_profile;

/// Every value in effect: what is set, and what follows from it for the model in use.
pub fn entries(config: &Config) -> Result<Vec<ConfigEntry>, Failure> {
    let mut entries = config.entries();
    let usual = entries
        .iter_mut()
        .find(|entry| entry.key == "summarizer.use" && entry.origin == Origin::Default);
    if let Some(usual) = usual
        && config.provider().is_some_and(connect::is_ready)
    {
        // Where nobody chose, a model that can be asked writes.
        usual.value = json!("model");
    }
    entries.extend(profile(config)?);
    let address = |set: Option<&Setting<IpAddr>>| set.map(|set| (set.value, set.origin.clone()));
    let host = address(config.serve.host.as_ref());
    let (host, origin) = host.unwrap_or((Ipv4Addr::LOCALHOST.into(), Origin::Default));
    entries.push(entry("serve.host", json!(host.to_string()), origin));
    let port = config.serve.port.clone();
    let port = port.unwrap_or(Setting::new(PORT, Origin::Default));
    entries.push(entry("serve.port", json!(port.value), port.origin));
    entries.extend(upstreams(config)?);
    Ok(entries)
}

fn entry(key: &str, value: Value, origin: Origin) -> ConfigEntry {
    ConfigEntry {
        key: format!("effective.{key}"),
        value,
        origin,
    }
}

/// How a conversation with the model in use is folded.
fn profile(config: &Config) -> Result<Vec<ConfigEntry>, Failure> {
    let resolved = config
        .resolve(&ProfileRequest::default())
        .map_err(no_profile)?;
    let profile = resolved.profile;
    let model = config.model();
    let origin = model.map_or(Origin::Default, |model| model.origin.clone());
    let mut entries = vec![entry(
        "model",
        json!(model.map(|model| &model.value)),
        origin,
    )];
    for (name, origin) in resolved.origins {
        let value = match name {
            "window" => json!(profile.window),
            "max_tokens" => json!(profile.max_tokens),
            "threshold" => match profile.threshold.percent() {
                percent if percent.fract() == 0.0 => json!(percent as u64),
                percent => json!(percent),
            },
            "auto" => json!(profile.auto),
            "keep" => match profile.keep {
                KeepRecent::Messages(count) => json!(count),
                KeepRecent::Share(share) => json!(share),
            },
            "ratio" => json!(profile.ratio),
            "condense_model" => json!(Some(&profile.condense_model).filter(|it| !it.is_empty())),
            "prompt" => json!(profile.prompt),
            "strategy" => json!(profile.strategy),
            // The rest is known of the model, not set: `infold models NAME` shows it.
            _ => continue,
        };
        entries.push(entry(name, value, origin));
    }
    Ok(entries)
}

/// Where the proxy sends the requests of each API.
fn upstreams(config: &Config) -> Result<Vec<ConfigEntry>, Failure> {
    const VARIABLE: &str = "INFOLD_PROVIDER";
    let named = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    let upstreams = Upstreams::new(config, &[], named.as_deref())?;
    let row = |wire: Wire| {
        let (api, upstream) = (SERVED_APIS[wire as usize], upstreams.of(wire));
        let provider = &upstream.provider;
        let set = config.serve.upstreams.iter().find(|(of, _)| *of == api);
        let origin = match (set, &provider.base_url) {
            _ if named.as_ref() == Some(&provider.name) => Origin::Env(VARIABLE.to_owned()),
            (Some((_, set)), _) => set.origin.clone(),
            (None, Some(base)) => base.origin.clone(),
            (None, None) => provider.api.origin.clone(),
        };
        let base = upstream.endpoint.base();
        let speaks = upstream.endpoint.wire;
        let value = match speaks == wire {
            true => base,
            false => format!("{}+{base}", SERVED_APIS[speaks as usize]),
        };
        entry(&format!("upstreams.{api}"), json!(value), origin)
    };
    Ok(Wire::ALL.map(row).into_iter().collect())
}
