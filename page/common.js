// Modules that the frame and several views need. esbuild imports this list into every module, so that all of them come
// in one script beside page.js. Without the list, esbuild would make a script of each combination of views.
import "./api.js";
import "./drafts.js";
import "./format.js";
import "./live.js";
import "./metric.js";
import "./parts.jsx";
import "./record.js";
import "./request.js";
import "./route.js";
import "./spark.jsx";
import "./words.js";
