//! The values in effect that `infold config show` derives from the configuration.

use std::net::{IpAddr, Ipv4Addr};

use infold::config::{ConfigEntry, ProfileRequest, SERVED_APIS};
use infold::profile::{Origin, Setting};
use infold::{Config, connect};
use infold_serve::Upstreams;
use infold_wire::Wire;
use serde_json::{Value, json};

use crate::error::CliResult;
use crate::fold_options::no_profile;
use crate::models::keep_json;
use crate::serve::DEFAULT_PORT;

/// Returns every value in effect: the configured values, and those derived from them for the model in use.
pub fn entries(config: &Config) -> CliResult<Vec<ConfigEntry>> {
    let mut entries = config.entries();
    let summarizer = entries
        .iter_mut()
        .find(|entry| entry.key == "summarizer.use" && entry.origin == Origin::Default);
    if let Some(summarizer) = summarizer
        && config.provider().is_some_and(connect::is_ready)
    {
        // By default an available model writes summaries.
        summarizer.value = json!("model");
    }
    entries.extend(profile(config)?);
    let address = |set: Option<&Setting<IpAddr>>| set.map(|set| (set.value, set.origin.clone()));
    let host = address(config.serve.host.as_ref());
    let (host, origin) = host.unwrap_or((Ipv4Addr::LOCALHOST.into(), Origin::Default));
    entries.push(entry("serve.host", json!(host.to_string()), origin));
    let port = config.serve.port.clone();
    let port = port.unwrap_or(Setting::new(DEFAULT_PORT, Origin::Default));
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

/// Returns how a conversation with the model in use is folded.
fn profile(config: &Config) -> CliResult<Vec<ConfigEntry>> {
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
            "keep" => keep_json(profile.keep),
            "ratio" => json!(profile.ratio),
            "condense_model" => json!(Some(&profile.condense_model).filter(|it| !it.is_empty())),
            "prompt" => json!(profile.prompt),
            "strategy" => json!(profile.strategy),
            // The other keys are properties of the model: `infold models NAME` shows them.
            _ => continue,
        };
        entries.push(entry(name, value, origin));
    }
    Ok(entries)
}

/// Returns where the proxy sends the requests of each API.
fn upstreams(config: &Config) -> CliResult<Vec<ConfigEntry>> {
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
        let value = if speaks == wire {
            base
        } else {
            format!("{}+{base}", SERVED_APIS[speaks as usize])
        };
        entry(&format!("upstreams.{api}"), json!(value), origin)
    };
    Ok(Wire::ALL.map(row).into_iter().collect())
}
