// Pictures of the page in its states, to look at: `node look.mjs FOLDER`.

import { mkdir } from "node:fs/promises";
import { launch } from "./chromium.mjs";
import { Mock, SCENES } from "./mock.mjs";

const folder = process.argv[2] ?? "shots";
const only = process.argv[3];
await mkdir(folder, { recursive: true });

const SIZES = { desktop: [1280, 800], phone: [390, 844] };
const VOICED = ["listening", "plan"];

for (const [size, [width, height]] of Object.entries(SIZES)) {
  for (const dark of [false, true]) {
    const browser = await launch({ width, height, dark });
    for (const scene of [...Object.keys(SCENES), "error", "nokey"]) {
      if (only && !scene.startsWith(only)) continue;
      const mock = await Mock.start();
      const page = await browser.context.newPage();
      await page.goto(scene === "nokey" ? mock.origin : mock.link);
      if (scene !== "nokey") {
        await page.waitForSelector('#conn[data-state="open"]');
        if (VOICED.includes(scene)) await page.click("#mic");
        (SCENES[scene] ?? SCENES.listening)(mock);
      }
      if (scene === "error") {
        await page.waitForTimeout(300);
        await mock.stop();
        await page.waitForSelector('#conn[data-state="unreachable"]');
      }
      await page.waitForTimeout(900);
      await page.screenshot({ path: `${folder}/${scene}-${size}-${dark ? "dark" : "light"}.png` });
      await page.close();
      if (scene !== "error") await mock.stop();
    }
    await browser.close();
  }
}
