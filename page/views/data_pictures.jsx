// Some pictures of a drop, on its data card. Whoever may not read the drop sees none.
import { get } from "../api.js";
import { useEffect, useState } from "preact/hooks";
import { Pictures } from "./run/files.jsx";

/**
 * `of` names a generation, as in `GET data/pictures`.
 * @param {{ of: string }} props
 */
export function DataPictures({ of }) {
  const [pictures, set] = useState({});
  useEffect(() => {
    get(["data", "pictures"], { of }).then(
      (answer) => set(answer.pictures),
      () => set({}),
    );
  }, [of]);
  return Object.keys(pictures).length > 0 && <Pictures pictures={pictures} />;
}
