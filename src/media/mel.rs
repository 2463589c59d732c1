//! The mel filter bank of 16 kHz speech models: in the head of a recogniser's file, and before the judge of ends of turns.
//!
//! Owns one formula (Slaney's scale, area-normalised triangles). Called by the converter of weights and by `listen`. Pure.

/// Frequency bins of a 400-point transform at 16 kHz: 0, 40, ... 8000 Hz.
pub const BINS: usize = 201;

const SAMPLE_RATE_HZ: f64 = 16_000.0;
/// Below this the scale is linear, above it logarithmic.
const BREAK_HZ: f64 = 1_000.0;
const LINEAR_STEP_HZ: f64 = 200.0 / 3.0;

fn break_mel() -> f64 {
    BREAK_HZ / LINEAR_STEP_HZ
}

/// 27 steps carry the logarithmic part from 1 kHz to 6.4 kHz.
fn log_step() -> f64 {
    6.4_f64.ln() / 27.0
}

fn to_mel(hz: f64) -> f64 {
    if hz < BREAK_HZ { hz / LINEAR_STEP_HZ } else { break_mel() + (hz / BREAK_HZ).ln() / log_step() }
}

fn to_hz(mel: f64) -> f64 {
    if mel >= break_mel() { BREAK_HZ * (log_step() * (mel - break_mel())).exp() } else { LINEAR_STEP_HZ * mel }
}

/// `bands` triangles over [`BINS`] bins, one row a band.
pub fn filters(bands: usize) -> Vec<f32> {
    let (low, high) = (to_mel(0.0), to_mel(SAMPLE_RATE_HZ / 2.0));
    let step = (high - low) / (bands + 1) as f64;
    let edges: Vec<f64> =
        (0..bands + 2).map(|n| to_hz(if n == bands + 1 { high } else { n as f64 * step + low })).collect();
    let bin_hz = SAMPLE_RATE_HZ / 400.0;
    edges.array_windows().flat_map(|[left, middle, right]| {
        let area = 2.0 / (right - left);
        (0..BINS).map(move |bin| {
            let hz = bin as f64 * bin_hz;
            let rise = -(left - hz) / (middle - left);
            let fall = (right - hz) / (right - middle);
            let height = rise.min(fall);
            (if height < 0.0 { 0.0 } else { height * area }) as f32
        })
    }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_triangles_of_equal_area() {
        let table = filters(80);
        assert_eq!(table.len(), 80 * BINS);
        // The wide upper bands span many bins; their sums times the width of a bin come close to one.
        for band in 60..80 {
            let area: f32 = table[band * BINS..(band + 1) * BINS].iter().sum::<f32>() * 40.0;
            assert!((area - 1.0).abs() < 0.05, "band {band}: {area}");
        }
        assert!(table.iter().all(|value| *value >= 0.0 && value.is_finite()));
    }

    #[test]
    fn the_scale_turns_round() {
        for hz in [0.0, 440.0, 1_000.0, 5_000.0, 8_000.0] {
            assert!((to_hz(to_mel(hz)) - hz).abs() < 1e-6, "{hz}");
        }
    }
}
