// The way in: trades the one-use code of the printed link for this page's key. The key lives in sessionStorage and nowhere else.

const KEY = "voxgate.token";

export const token = () => sessionStorage.getItem(KEY);
export const forget = () => sessionStorage.removeItem(KEY);

// What stands behind the # of the address: `code` and `conversation`.
export function fragment() {
  const all = new URLSearchParams(location.hash.slice(1));
  return { code: all.get("code"), conversation: all.get("conversation") };
}

// Takes the code out of the address bar before anything else happens with it.
function hideCode(conversation) {
  const rest = conversation ? `#conversation=${encodeURIComponent(conversation)}` : "";
  history.replaceState(null, "", location.pathname + location.search + rest);
}

// Answers {ok: true} with a key stored, or {ok: false, why} with a sentence for the person.
export async function enter() {
  const { code, conversation } = fragment();
  if (!code) return token() ? { ok: true } : { ok: false, why: "" };
  hideCode(conversation);
  let answer;
  try {
    answer = await fetch("/api/link", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code }) });
  } catch {
    return { ok: false, why: "voxgate does not answer at this address. Is it still running?" };
  }
  const body = await answer.json().catch(() => ({}));
  if (answer.ok && typeof body.token === "string" && body.token) {
    sessionStorage.setItem(KEY, body.token);
    return { ok: true };
  }
  // A used code does no harm to a page that is already in.
  if (token()) return { ok: true };
  if (answer.status === 429) return { ok: false, why: "Too many links were tried. Wait a minute, then make a new one." };
  return { ok: false, why: "That link was used before, or it is older than a minute." };
}
