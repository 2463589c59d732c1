//! The session object: what a client asked for, what holds, and how it is written out.
//!
//! An update is read whole before anything changes, so a refused one changes nothing. Some fields are kept and echoed without
//! effect, because clients send them as a matter of course: `tool_choice`, `parallel_tool_calls`, `max_output_tokens`, `reasoning`,
//! `tracing`, `truncation`, `include`, `audio.input.noise_reduction`, `audio.output.voice` and `speed`. `temperature` is read over.
//! What would let somebody else run tools (`prompt`, tools that are not functions) is left out of what holds, and said.

use serde_json::{Map, Value, json};

use super::audio::Format;
use super::error::{BadEvent, shown};
use super::fields::{Fields, no_hint, wrong_type};
use super::turns::{self, Turns, TurnsChange};
use super::upstream::plain;
use super::{INSTRUCTIONS_MAX, KEPT_BYTES_MAX, TOOLS_BYTES_MAX, TOOLS_MAX};

/// Fields of the session that are kept as they came.
const KEPT: [&str; 7] =
    ["tool_choice", "max_output_tokens", "parallel_tool_calls", "reasoning", "tracing", "truncation", "include"];

/// What responses are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modality {
    /// Sound and its transcript.
    #[default]
    Audio,
    /// Text alone.
    Text,
}

impl Modality {
    /// As it stands in a session or response object.
    pub fn to_json(self) -> Value {
        match self {
            Self::Audio => json!(["audio"]),
            Self::Text => json!(["text"]),
        }
    }

    pub(super) fn read(fields: &Fields) -> Result<Option<Self>, BadEvent> {
        let Some(list) = fields.list("output_modalities")? else { return Ok(None) };
        match list.iter().map(Value::as_str).collect::<Vec<_>>().as_slice() {
            [Some("audio")] => Ok(Some(Self::Audio)),
            [Some("text")] => Ok(Some(Self::Text)),
            _ => Err(BadEvent::value(fields.path("output_modalities"), "Supported combinations are: ['audio'] and ['text'].")),
        }
    }
}

/// A client's tools after the reading: the functions, and the types of what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tools {
    /// Function tools, as they came.
    pub functions: Vec<Value>,
    /// Types that were left out, because a provider would run them itself (`mcp`, `web_search`, ...).
    pub left_out: Vec<String>,
}

impl Tools {
    pub(super) fn read(fields: &Fields) -> Result<Option<Self>, BadEvent> {
        let Some(list) = fields.list("tools")? else { return Ok(None) };
        let path = fields.path("tools");
        if list.len() > TOOLS_MAX {
            return Err(BadEvent::value(path, format!("At most {TOOLS_MAX} tools, got {}.", list.len())));
        }
        if list.iter().map(|tool| tool.to_string().len()).sum::<usize>() > TOOLS_BYTES_MAX {
            return Err(BadEvent::value(path, format!("Too large: all tools together may take {TOOLS_BYTES_MAX} bytes of JSON.")));
        }
        let mut tools = Self::default();
        for (at, tool) in list.iter().enumerate() {
            let fields = Fields::of(tool, format!("{path}[{at}]"))?;
            match fields.need_text("type")? {
                "function" => tools.functions.push(function(&fields, tool)?),
                other => tools.left_out.push(shown(other)),
            }
        }
        Ok(Some(tools))
    }
}

fn function(fields: &Fields, tool: &Value) -> Result<Value, BadEvent> {
    let name = fields.need_text("name")?;
    if name.is_empty() || name.len() > 64 || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) {
        return Err(BadEvent::value(fields.path("name"), "A function's name has 1 to 64 letters, digits, '_', '-' or '.'."));
    }
    fields.text("description")?;
    fields.object("parameters")?;
    Ok(tool.clone())
}

/// The fields of a `session.update` that were there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionChange {
    model: Option<String>,
    modality: Option<Modality>,
    instructions: Option<String>,
    tools: Option<Tools>,
    prompt: bool,
    kept: Map<String, Value>,
    input_format: Option<Format>,
    noise_reduction: Option<Value>,
    transcription: Option<Value>,
    turns: Option<Option<TurnsChange>>,
    output_format: Option<Format>,
    voice: Option<Value>,
    speed: Option<f64>,
}

impl SessionChange {
    /// Reads the session of a `session.update`.
    ///
    /// # Errors
    /// [`BadEvent`], naming the field.
    pub fn parse(session: &Value) -> Result<Self, BadEvent> { Self::read(&Fields::of(session, "session".into())?) }

    pub(super) fn read(fields: &Fields) -> Result<Self, BadEvent> {
        if fields.word("type", &["realtime"])?.is_none() {
            return Err(BadEvent::missing(fields.path("type")));
        }
        let own = [
            "type", "object", "id", "expires_at", "model", "output_modalities", "instructions", "tools", "prompt", "audio", "temperature",
        ];
        fields.only(&[&own[..], &KEPT[..]].concat(), moved)?;
        let mut change = Self {
            model: fields.text_max("model", 128)?.map(str::to_string),
            modality: Modality::read(fields)?,
            instructions: fields.text_max("instructions", INSTRUCTIONS_MAX)?.map(str::to_string),
            tools: Tools::read(fields)?,
            prompt: fields.get("prompt").is_some(),
            ..Self::default()
        };
        fields.number("temperature", 0.0, 2.0)?;
        change.kept = kept(fields)?;
        if let Some(audio) = fields.object("audio")? {
            audio.only(&["input", "output"], no_hint)?;
            if let Some(input) = audio.object("input")? {
                change.read_input(&input)?;
            }
            if let Some(output) = audio.object("output")? {
                change.read_output(&output)?;
            }
        }
        Ok(change)
    }

    /// What of it goes on to a provider, as a partial session. Instructions, tools and turn taking are the gateway's to send, and tracing
    /// would put the conversation on somebody's screen: they are not in it.
    pub fn forwarded(&self) -> Value {
        let mut session = Map::new();
        for (name, fields) in [("tool_choice", &["type", "name"][..]), ("max_output_tokens", &[]), ("parallel_tool_calls", &[]), ("reasoning", &["effort"]), ("truncation", &["type", "retention_ratio"]), ("include", &[])] {
            if let Some(value) = self.kept.get(name) { session.insert(name.to_string(), plain(value, fields)); }
        }
        if let Some(modality) = self.modality { session.insert("output_modalities".into(), modality.to_json()); }
        let put = |fields: &[(&str, &Option<Value>)]| -> Map<String, Value> { fields.iter().filter_map(|(name, value)| (*value).clone().map(|v| ((*name).to_string(), v))).collect() };
        let format = |format: Option<Format>| format.map(Format::to_json);
        let input = put(&[("format", &format(self.input_format)), ("noise_reduction", &self.noise_reduction.as_ref().map(|v| plain(v, &["type"]))),
            ("transcription", &self.transcription.as_ref().map(|v| plain(v, &["model", "language", "languages", "prompt", "keywords", "delay"])))]);
        let output = put(&[("format", &format(self.output_format)), ("voice", &self.voice.as_ref().map(|v| plain(v, &["id"]))), ("speed", &self.speed.map(Value::from))]);
        let mut audio = Map::new();
        if !input.is_empty() { audio.insert("input".into(), Value::Object(input)); }
        if !output.is_empty() { audio.insert("output".into(), Value::Object(output)); }
        if !audio.is_empty() { session.insert("audio".into(), Value::Object(audio)); }
        Value::Object(session)
    }

    /// The formats it asks for, each with the field that names it.
    pub fn formats(&self) -> Vec<(&'static str, Format)> {
        let fields = [("session.audio.input.format", self.input_format), ("session.audio.output.format", self.output_format)];
        fields.into_iter().filter_map(|(field, format)| format.map(|format| (field, format))).collect()
    }

    fn read_input(&mut self, input: &Fields) -> Result<(), BadEvent> {
        input.only(&["format", "noise_reduction", "transcription", "turn_detection"], no_hint)?;
        self.input_format = input.object("format")?.as_ref().map(Format::read).transpose()?;
        if let Some(noise) = input.object("noise_reduction")? {
            noise.word("type", &["near_field", "far_field"])?;
        }
        self.noise_reduction = input.kept("noise_reduction", KEPT_BYTES_MAX)?;
        if let Some(transcription) = input.object("transcription")? {
            transcription.text("model")?;
            transcription.text("language")?;
            transcription.text("prompt")?;
        }
        self.transcription = input.kept("transcription", KEPT_BYTES_MAX)?;
        self.turns = match input.raw("turn_detection") {
            None => None,
            Some(Value::Null) => Some(None),
            Some(value) => Some(Some(TurnsChange::read(&Fields::of(value, input.path("turn_detection"))?)?)),
        };
        Ok(())
    }

    fn read_output(&mut self, output: &Fields) -> Result<(), BadEvent> {
        output.only(&["format", "voice", "speed"], no_hint)?;
        self.output_format = output.object("format")?.as_ref().map(Format::read).transpose()?;
        self.voice = voice(output)?;
        self.speed = output.number("speed", 0.25, 1.5)?;
        Ok(())
    }
}

/// A voice is a name or an object with an `id`.
pub(super) fn voice(output: &Fields) -> Result<Option<Value>, BadEvent> {
    match output.get("voice") {
        None => Ok(None),
        Some(Value::String(_)) => Ok(output.text_max("voice", 128)?.map(|name| json!(name))),
        Some(Value::Object(_)) => {
            let id = output.need_object("voice")?.need_id("id")?.to_string();
            Ok(Some(json!({"id": id})))
        }
        Some(other) => Err(wrong_type(output.path("voice"), "a string or an object", other)),
    }
}

/// The kept fields that are there, each checked for its kind.
fn kept(fields: &Fields) -> Result<Map<String, Value>, BadEvent> {
    output_tokens(fields)?;
    fields.flag("parallel_tool_calls")?;
    fields.object("reasoning")?;
    fields.list("include")?;
    let mut kept = Map::new();
    for name in KEPT {
        if let Some(value) = fields.kept(name, KEPT_BYTES_MAX)? {
            kept.insert(name.to_string(), value);
        }
    }
    Ok(kept)
}

/// `max_output_tokens`: 1 to 4096, or `"inf"`.
pub(super) fn output_tokens(fields: &Fields) -> Result<(), BadEvent> {
    match fields.get("max_output_tokens") {
        Some(Value::String(text)) if text == "inf" => Ok(()),
        _ => fields.whole("max_output_tokens", 1, 4_096).map(|_| ()),
    }
}

/// Where a field of older clients lives now.
fn moved(name: &str) -> Option<&'static str> {
    Some(match name {
        "modalities" => "session.output_modalities",
        "voice" => "session.audio.output.voice",
        "speed" => "session.audio.output.speed",
        "input_audio_format" => "session.audio.input.format",
        "output_audio_format" => "session.audio.output.format",
        "input_audio_transcription" => "session.audio.input.transcription",
        "input_audio_noise_reduction" => "session.audio.input.noise_reduction",
        "turn_detection" => "session.audio.input.turn_detection",
        "max_response_output_tokens" => "session.max_output_tokens",
        _ => return None,
    })
}

/// What an update changed, for whoever has to act on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// New instructions, also when they are empty.
    pub instructions: Option<String>,
    /// Turn taking differs now. The inner `None`: by hand.
    pub turns: Option<Option<Turns>>,
    /// Audio or text differs now.
    pub modality: Option<Modality>,
    /// The input format differs now.
    pub input_format: bool,
    /// Names of client functions that are there now, when tools came.
    pub functions: Vec<String>,
    /// What was left out: tool types and `prompt`.
    pub left_out: Vec<String>,
}

/// What holds.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionState {
    id: String,
    model: String,
    model_named: bool,
    /// What responses are made of.
    pub modality: Modality,
    /// The client's instructions.
    pub instructions: String,
    functions: Vec<Value>,
    kept: Map<String, Value>,
    /// Sound that comes in.
    pub input_format: Format,
    noise_reduction: Value,
    transcription: Value,
    /// Turn taking; `None`: by hand.
    pub turns: Option<Turns>,
    /// Sound that goes out.
    pub output_format: Format,
    voice: Value,
    speed: f64,
}

impl SessionState {
    /// A session's beginning. `model` as the address named it; a session without one takes the first that an update names.
    pub fn new(id: &str, model: Option<&str>) -> Self {
        let mut kept = Map::new();
        kept.insert("tool_choice".into(), json!("auto"));
        kept.insert("max_output_tokens".into(), json!("inf"));
        kept.insert("tracing".into(), Value::Null);
        kept.insert("truncation".into(), json!("auto"));
        Self {
            id: id.to_string(),
            model: model.unwrap_or("voxgate").to_string(),
            model_named: model.is_some(),
            modality: Modality::Audio,
            instructions: String::new(),
            functions: Vec::new(),
            kept,
            input_format: Format::Pcm,
            noise_reduction: Value::Null,
            transcription: json!({"model": "voxgate"}),
            turns: Some(Turns::default()),
            output_format: Format::Pcm,
            voice: json!("voxgate"),
            speed: 1.0,
        }
    }

    /// The functions the client declared, as they came.
    pub fn functions(&self) -> &[Value] { &self.functions }

    /// Functions of these names are not the client's to declare.
    pub fn drop_functions(&mut self, taken: impl Fn(&str) -> bool) -> Vec<String> {
        let names: Vec<String> = self.functions.iter().filter_map(|f| f["name"].as_str()).filter(|n| taken(n)).map(str::to_string).collect();
        self.functions.retain(|f| !f["name"].as_str().is_some_and(&taken));
        names
    }

    /// The name the client knows the model by.
    pub fn model(&self) -> &str { &self.model }

    /// False once the client switched transcripts of its own speech off.
    pub fn transcribes(&self) -> bool { !self.transcription.is_null() }

    /// The voice, as responses name it.
    pub fn voice(&self) -> &Value { &self.voice }

    /// `max_output_tokens`, as responses name it.
    pub fn max_output_tokens(&self) -> Value { self.kept.get("max_output_tokens").cloned().unwrap_or_else(|| json!("inf")) }

    /// Takes an update over. `spoken`: sound has gone out already, which fixes the voice.
    ///
    /// # Errors
    /// Fields that are fixed by now; nothing has changed then.
    pub fn apply(&mut self, change: SessionChange, spoken: bool) -> Result<Applied, BadEvent> {
        self.check_fixed(&change, spoken)?;
        let before = self.clone();
        let mut applied = Applied::default();
        if let Some(model) = change.model {
            self.model = model;
            self.model_named = true;
        }
        if let Some(tools) = change.tools {
            applied.functions = tools.functions.iter().filter_map(|t| t["name"].as_str().map(str::to_string)).collect();
            applied.left_out = tools.left_out;
            self.functions = tools.functions;
        }
        if change.prompt {
            applied.left_out.push("prompt".into());
        }
        if let Some(text) = change.instructions {
            self.instructions = text;
            applied.instructions = Some(self.instructions.clone());
        }
        self.kept.extend(change.kept);
        self.modality = change.modality.unwrap_or(self.modality);
        self.input_format = change.input_format.unwrap_or(self.input_format);
        self.output_format = change.output_format.unwrap_or(self.output_format);
        self.speed = change.speed.unwrap_or(self.speed);
        set(&mut self.noise_reduction, change.noise_reduction);
        set(&mut self.transcription, change.transcription);
        set(&mut self.voice, change.voice);
        if let Some(turns) = change.turns {
            self.turns = turns.map(|turns| turns.over(self.turns));
        }
        applied.turns = (self.turns != before.turns).then_some(self.turns);
        applied.modality = (self.modality != before.modality).then_some(self.modality);
        applied.input_format = self.input_format != before.input_format;
        Ok(applied)
    }

    fn check_fixed(&self, change: &SessionChange, spoken: bool) -> Result<(), BadEvent> {
        if let Some(model) = change.model.as_deref().filter(|model| self.model_named && *model != self.model) {
            let message = format!("The model of a session is fixed ('{}'), it cannot become '{}'.", shown(&self.model), shown(model));
            return Err(BadEvent::value("session.model", message));
        }
        if spoken && change.voice.as_ref().is_some_and(|voice| *voice != self.voice) {
            let message = "Cannot update a conversation's voice once assistant audio is present.";
            return Err(BadEvent::at("cannot_update_voice", "session.audio.output.voice", message));
        }
        Ok(())
    }

    /// The whole session object, as `session.created` and `session.updated` carry it.
    pub fn to_json(&self) -> Value {
        let mut session = json!({
            "type": "realtime",
            "object": "realtime.session",
            "id": self.id,
            "model": self.model,
            "output_modalities": self.modality.to_json(),
            "instructions": self.instructions,
            "tools": self.functions,
            "prompt": null,
            "audio": {
                "input": {
                    "format": self.input_format.to_json(),
                    "noise_reduction": self.noise_reduction,
                    "transcription": self.transcription,
                    "turn_detection": turns::to_json(self.turns),
                },
                "output": {"format": self.output_format.to_json(), "voice": self.voice, "speed": self.speed},
            },
        });
        if let Value::Object(map) = &mut session {
            map.extend(self.kept.clone());
        }
        session
    }
}

fn set(place: &mut Value, new: Option<Value>) {
    if let Some(new) = new {
        *place = new;
    }
}
