//! What recognisers write when nobody spoke: stock closers of the films they were trained with, in the languages they know.
//!
//! Pure. Called where an utterance's words are about to become a turn, and by what measures that. Never touches words that
//! decide something: a closer is dropped only where nothing was decided.

/// Lines that stand alone over silence, noise and music, as [`super::grammar::words_of`] writes them: small letters, no marks.
/// From public reports about Whisper and its kin. "No", "stop", "yes" and whatever else may answer a question is never here.
const CLOSERS: &[&str] = &[
    // English
    "you", "thank you", "thank you so much", "thank you very much", "thanks", "thanks for watching", "thanks for listening", "thank you for watching", "thank you for listening",
    "thank you for your attention", "thank you for your time", "thanks for your time", "please subscribe", "please subscribe to my channel", "please like and subscribe", "like and subscribe", "dont forget to subscribe",
    "subscribe", "see you next time", "see you in the next video", "see you in the next one", "ill see you next time", "ill see you in the next video", "well be right back", "bye", "bye bye", "bye bye bye", "goodbye", "the end", "to be continued", "so", "oh",
    "uh", "um", "hmm", "hm", "mm", "mmm", "ah", "eh", "huh", "i", "the", "a", "and", "music", "applause", "laughter", "blank audio", "no audio", "inaudible", "static", "foreign", "speaking in foreign language",
    "subtitles by the amara org community", "captions by the amara org community", "transcription by castingwords", "transcribed by otter ai", "www mooji org",
    // German
    "vielen dank", "danke", "danke schön", "vielen dank fürs zuschauen", "danke fürs zuschauen", "vielen dank für ihre aufmerksamkeit", "bis zum nächsten mal", "tschüss", "untertitel der amara org community", "untertitel im auftrag des zdf für funk 2017", "untertitelung des zdf 2020", "untertitelung im auftrag des zdf 2021",
    "copyright wdr 2021", "copyright wdr 2020",
    // French
    "merci", "merci beaucoup", "merci davoir regardé cette vidéo", "merci davoir regardé", "sous titres réalisés par la communauté damara org", "sous titres réalisés para la communauté damara org", "sous titrage st 501", "sous titrage société radio canada", "à bientôt", "au revoir",
    // Spanish, Portuguese, Italian
    "gracias", "muchas gracias", "gracias por ver el video", "gracias por ver", "subtítulos realizados por la comunidad de amara org", "suscríbete", "obrigado", "obrigada", "legendas pela comunidade amara org", "grazie", "grazie a tutti", "sottotitoli creati dalla comunità amara org", "sottotitoli e revisione a cura di qtss",
    // Russian, Polish, Dutch, Turkish
    "спасибо", "спасибо за просмотр", "продолжение следует", "субтитры сделал dimatorzok", "субтитры создавал dimatorzok", "редактор субтитров а семкин корректор а егорова", "dziękuję", "dziękuję za uwagę", "napisy stworzone przez społeczność amara org", "bedankt", "bedankt voor het kijken", "ondertitels ingediend door de amara org gemeenschap", "ondertiteld door de amara org gemeenschap",
    "izlediğiniz için teşekkürler", "altyazı mk",
    // Chinese, Japanese, Korean
    "谢谢", "謝謝", "谢谢观看", "謝謝觀看", "请不吝点赞 订阅 转发 打赏支持明镜与点点栏目", "字幕由amara org社区提供", "ご視聴ありがとうございました", "ありがとうございました", "시청해주셔서 감사합니다", "감사합니다", "구독과 좋아요 부탁드립니다", "mbc 뉴스 이덕영입니다",
];

/// True when these words (of [`super::grammar::words_of`], which cuts a line said several times to one) are nothing but such a line.
pub fn is_stock_closer(words: &[String]) -> bool {
    let line = words.join(" ");
    CLOSERS.contains(&line.as_str())
}

#[cfg(test)]
mod tests {
    use super::super::grammar::{meaning_of, words_of};
    use super::*;

    #[test]
    fn closers_are_known_alone_and_doubled_and_in_many_languages() {
        for line in ["Thank you.", "Thanks for watching!", "you", "Thank you. Thank you. Thank you.", "Vielen Dank.", "Merci d'avoir regardé cette vidéo !", "Продолжение следует...", "ご視聴ありがとうございました", "시청해주셔서 감사합니다", "Please subscribe!", "Bye-bye."] {
            assert!(is_stock_closer(&words_of(line)), "{line}: {:?}", words_of(line));
        }
        for line in ["", "No.", "Yes.", "Thank you, now stop.", "Thank you Tom", "Okay", "What is the end of the line?"] {
            assert!(!is_stock_closer(&words_of(line)), "{line}");
        }
    }

    #[test]
    fn field_case_27_what_is_reported_of_silence_and_noise_is_no_turn() {
        // Lines that users of other systems found in their transcripts of silence, wind and music.
        for line in ["[BLANK_AUDIO]", "(wind blowing)", "Thanks for watching!", "Thank you for watching.", "시청해주셔서 감사합니다.", "[Music]", "Please subscribe to my channel.", "you", "Bye. Bye. Bye.", "Subtitles by the Amara.org community"] {
            let words = words_of(line);
            assert!(words.is_empty() || is_stock_closer(&words), "{line}: {words:?}");
        }
    }

    #[test]
    fn no_closer_means_anything_in_the_grammar() {
        let meaning: Vec<_> = CLOSERS.iter().filter(|c| meaning_of(c).is_some_and(|m| m != super::super::grammar::Meaning::Rival)).collect();
        assert!(meaning.is_empty(), "{meaning:?}");
    }
}
