//! How loud: levels in dBFS, and the ways foreign samples become mono i16.
//!
//! Owns level measures, float sanitising and downmixing. Called by the ear, the voices and the sound doors. Never keeps state.

/// What is reported for digital silence, in dBFS.
pub const FLOOR_DBFS: f32 = -120.0;

/// Root mean square of `samples` in dBFS, where 0 is a full-scale square wave (a full-scale sine reads -3.01).
/// [`FLOOR_DBFS`] when empty or silent.
pub fn rms_dbfs(samples: &[i16]) -> f32 {
    if samples.is_empty() {
        return FLOOR_DBFS;
    }
    let energy: f64 = samples.iter().map(|&s| f64::from(s) * f64::from(s)).sum();
    ratio_to_db((energy / samples.len() as f64).sqrt() / 32768.0)
}

/// The largest absolute sample, 0..=32768.
pub fn peak(samples: &[i16]) -> u16 {
    samples.iter().map(|s| s.unsigned_abs()).max().unwrap_or(0)
}

/// An amplitude ratio as decibels, never below [`FLOOR_DBFS`].
pub fn ratio_to_db(ratio: f64) -> f32 {
    if ratio > 0.0 { (20.0 * ratio.log10()).max(f64::from(FLOOR_DBFS)) as f32 } else { FLOOR_DBFS }
}

/// Decibels as an amplitude ratio.
pub fn db_to_ratio(db: f32) -> f32 {
    10f32.powf(db / 20.0)
}

/// A float sample (nominal -1..=1) as i16: NaN and infinities become silence, the rest is clamped.
pub fn sample_from_f32(x: f32) -> i16 {
    if x.is_finite() { (x * 32768.0).round().clamp(-32768.0, 32767.0) as i16 } else { 0 }
}

/// An i16-scaled float as i16: rounded and clamped, NaN and infinities become silence.
pub fn round_to_i16(x: f32) -> i16 {
    if x.is_finite() { x.round().clamp(-32768.0, 32767.0) as i16 } else { 0 }
}

/// Averages interleaved `channels` into mono and appends to `out`. A last incomplete group is left out; 0 channels give nothing.
pub fn downmix(interleaved: &[i16], channels: usize, out: &mut Vec<i16>) {
    match channels {
        0 => {}
        1 => out.extend_from_slice(interleaved),
        n => out.extend(interleaved.chunks_exact(n).map(|group| {
            let sum: i32 = group.iter().map(|&s| i32::from(s)).sum();
            (sum / n as i32) as i16
        })),
    }
}

/// Multiplies by `gain` in place, clamping.
pub fn scale(samples: &mut [i16], gain: f32) {
    for s in samples {
        *s = round_to_i16(f32::from(*s) * gain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_known_sounds() {
        let sine: Vec<i16> = (0..16_000).map(|n| (32767.0 * (n as f64 * std::f64::consts::FRAC_PI_8).sin()) as i16).collect();
        assert!((rms_dbfs(&sine) + 3.01).abs() < 0.02, "{}", rms_dbfs(&sine));
        assert!((rms_dbfs(&[3277; 100]) + 20.0).abs() < 0.01);
        assert_eq!(rms_dbfs(&[]), FLOOR_DBFS);
        assert_eq!(rms_dbfs(&[0; 9]), FLOOR_DBFS);
        assert_eq!(peak(&[i16::MIN, 5]), 32768);
        assert!((db_to_ratio(-6.0206) - 0.5).abs() < 1e-4);
    }

    #[test]
    fn floats_that_are_no_sound_become_silence_or_full_scale() {
        assert_eq!(sample_from_f32(f32::NAN), 0);
        assert_eq!(sample_from_f32(f32::INFINITY), 0);
        assert_eq!(sample_from_f32(3.0), i16::MAX);
        assert_eq!(sample_from_f32(-3.0), i16::MIN);
        assert_eq!(sample_from_f32(0.5), 16384);
    }

    #[test]
    fn downmix_averages_whole_groups() {
        let mut out = Vec::new();
        downmix(&[100, 200, -32768, -32768, 7], 2, &mut out);
        assert_eq!(out, [150, -32768]);
        downmix(&[6, 6, 6, 6, 6, 0], 6, &mut out);
        assert_eq!(out[2], 5);
        downmix(&[1], 0, &mut out);
        assert_eq!(out.len(), 3);
    }
}
