// The page of `kschedfw simulate --html`.

import { byId, fill } from "./dom.js";
import { ReplayView } from "./replay.js";

fill(byId("content"), new ReplayView(JSON.parse(byId("data").textContent)).element);
