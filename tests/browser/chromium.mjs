// Starts Debian's Chromium, headless, in a profile of its own.

import { mkdtemp, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const PROGRAM = process.env.VOXGATE_CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = [
  "--no-sandbox", "--headless=new", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--no-first-run", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream",
];

// `microphone`: a WAV that is heard once; without it the fake device beeps. Answers {context, close}.
export async function launch({ microphone, width = 1280, height = 800, dark = false } = {}) {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is missing: apt-get install chromium`);
  const profile = await mkdtemp(join(tmpdir(), "voxgate-page-"));
  const args = microphone ? [...FLAGS, `--use-file-for-fake-audio-capture=${microphone}%noloop`] : FLAGS;
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: PROGRAM, headless: true, args, viewport: { width, height }, colorScheme: dark ? "dark" : "light",
  });
  const close = async () => {
    await context.close();
    await rm(profile, { recursive: true, force: true });
  };
  return { context, close };
}
