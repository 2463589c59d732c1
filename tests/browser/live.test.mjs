// The page against a real `voxgate serve`: a spoken sentence turns the badge, the plan card approves, the question card allows.
//
// VOXGATE_PAGE_URL   the link that serve (or `voxgate link`) printed, with its code
// VOXGATE_FAKE_MIC   a WAV that says "Enter plan mode." after 3 s of silence
// VOXGATE_SHOTS      folder for the pictures (default: shots)

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { after, before, test } from "node:test";
import { launch } from "./chromium.mjs";

const { VOXGATE_PAGE_URL: link, VOXGATE_FAKE_MIC: microphone, VOXGATE_SHOTS: shots = "shots" } = process.env;
const HEARING_MS = 60000; // the recording, the recogniser on a busy machine, the turn
const TURN_MS = 45000;

let browser;
let page;

before(async () => {
  assert.ok(link?.includes("#code="), "VOXGATE_PAGE_URL must be the link that `voxgate serve` or `voxgate link` prints");
  assert.ok(microphone && existsSync(microphone), "VOXGATE_FAKE_MIC must name a WAV file");
  await mkdir(shots, { recursive: true });
  browser = await launch({ microphone });
  page = await browser.context.newPage();
  page.setDefaultTimeout(TURN_MS);
});

after(async () => { await browser?.close(); });

// A picture at both widths; the page stays as it is.
async function picture(name) {
  for (const [size, width, height] of [["phone", 390, 844], ["desktop", 1280, 800]]) {
    await page.setViewportSize({ width, height });
    await page.waitForTimeout(200);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}: nothing sticks out at ${width}`);
    await page.screenshot({ path: `${shots}/${name}-${size}.png` });
  }
}

// What the page shows, for the message of a failure.
async function inWords() {
  return page.evaluate(() => ["#conn-text", "#badge", "#mic-state", "#mic-hint", "#banner", "#notices", "#say-error", "#line-list", "#plan", "#question", "#trace"]
    .map((s) => `${s}: ${document.querySelector(s).hidden ? "(hidden)" : document.querySelector(s).innerText.replace(/\s+/g, " ")}`).join("\n"));
}

async function reached(what, wait) {
  try {
    return await wait;
  } catch (error) {
    await page.screenshot({ path: `${shots}/failed.png` });
    throw new Error(`${what}: ${error.message}\n${await inWords()}`);
  }
}

const outcomes = () => page.$$eval("#trace > li", (all) => all.map((n) => n.querySelector(".outcome").textContent));

// The voice says it, and its line is in the conversation.
async function said(pattern) {
  await reached(`the voice says ${pattern}`, page.waitForFunction(([source, flags]) =>
    [...document.querySelectorAll("#line-list .line.assistant:not(.partial)")].some((n) => new RegExp(source, flags).test(n.textContent)), [pattern.source, pattern.flags]));
}

async function type(words) {
  await page.fill("#text", words);
  await page.press("#text", "Enter");
}

test("speech turns the badge; the plan card approves; the question card lets the call run", async () => {
  const complaints = [];
  page.on("pageerror", (e) => complaints.push(String(e)));
  page.on("console", (m) => { if (m.type() === "error") complaints.push(m.text()); });

  await page.goto(link);
  await reached("the mirror connects", page.waitForSelector('#conn[data-state="open"]'));
  await reached("the page starts in default mode", page.waitForSelector('#badge[data-mode="default"]'));
  assert.equal(new URL(page.url()).hash, "", "the code has left the address bar");
  const before = (await outcomes()).length;
  await picture("1-open");

  await page.click("#mic");
  await reached("the microphone listens", page.waitForFunction(() => ["listening", "hearing", "speaking", "thinking"].includes(document.querySelector("#mic").dataset.state)));
  await reached("the spoken sentence turns the badge", page.waitForSelector('#badge[data-mode="plan"]', { timeout: HEARING_MS }));
  assert.equal(await page.textContent("#badge-name"), "PLAN MODE");
  await reached("what was said is in the conversation", page.waitForFunction(() =>
    [...document.querySelectorAll("#line-list .line.user")].some((n) => /plan mode/i.test(n.textContent))));
  await said(/plan mode is on/i);
  await picture("2-plan-mode");

  await type("Add buy eggs to my notes.");
  await reached("the gate refuses the call", page.waitForFunction((n) =>
    [...document.querySelectorAll("#trace .outcome")].length > n && document.querySelector("#trace .outcome").textContent === "refused", before));
  assert.equal(await page.getAttribute("#badge", "data-mode"), "plan");

  await type("Present the plan.");
  await reached("the plan card waits", page.waitForSelector('#plan[data-status="waiting"] #plan-approve:not([hidden])'));
  assert.ok((await page.$$("#plan-steps > li")).length >= 1, "the plan has steps");
  assert.match(await page.textContent("#plan-steps"), /eggs/i);
  await said(/plan one.*eggs/is);
  await picture("3-plan");

  await page.click("#plan-approve");
  await reached("the badge turns back", page.waitForSelector('#badge[data-mode="default"]'));
  await reached("the plan is approved", page.waitForSelector('#plan[data-status="approved"], #plan[data-status="completed"]'));

  await reached("the mutating step is asked about", page.waitForSelector("#question:not([hidden]) #question-yes"));
  assert.match(await page.textContent("#question-text"), /eggs/i);
  await said(/eggs to your notes/i);
  await picture("4-question");
  await page.click("#question-yes");
  await reached("the call has run", page.waitForFunction(() =>
    [...document.querySelectorAll("#trace > li")].some((n) => n.dataset.outcome === "ok" && /eggs/i.test(n.textContent))));
  await reached("the question is gone", page.waitForSelector("#question", { state: "hidden" }));
  assert.equal((await outcomes()).filter((o) => o === "waits for you").length, 0);
  await said(/I added buy eggs/i);
  await picture("5-done");

  assert.deepEqual(complaints, [], "the browser has nothing to complain about");
});
