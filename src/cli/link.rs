//! `voxgate link`: another link to the page of the gateway that runs on this home.

use std::process::ExitCode;

use super::setup::{Place, Trouble};
use crate::store::home::holder;
use crate::store::keys::Keys;

/// Asks the running gateway for a code of one use and prints the page's address with it.
///
/// # Errors
/// [`Trouble`] when none runs, or it does not answer.
pub async fn run(place: &Place) -> Result<ExitCode, Trouble> {
    let holder = holder(&place.home).map_err(Trouble::failed)?.filter(|h| !h.address.is_empty())
        .ok_or_else(|| Trouble::failed("no gateway runs on this home; start one with `voxgate serve` or `voxgate talk`"))?;
    let keys = Keys::load_or_create(&place.home).map_err(Trouble::failed)?;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let answer = reqwest::Client::new().post(format!("{}/api/link/new", holder.address)).bearer_auth(keys.operator().expose()).send().await
        .map_err(|e| Trouble::failed(format!("the gateway at {} does not answer: {}", holder.address, e.without_url())))?;
    let body: serde_json::Value = answer.json().await.map_err(|e| Trouble::failed(format!("the gateway at {} gave no code: {}", holder.address, e.without_url())))?;
    let code = body["code"].as_str().ok_or_else(|| Trouble::failed(format!("the gateway at {} gave no code", holder.address)))?;
    outln!("{}/#code={code}", holder.address);
    if let Some(secure) = body["secure_url"].as_str() { outln!("{secure}") }
    eprintln!("{}", if body["secure_url"].is_string() { "One of the two works once, for a minute; the second also from other machines." } else { "The link works once, for a minute." });
    Ok(ExitCode::SUCCESS)
}
