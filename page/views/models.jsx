// Models: their versions with the metric over them, what each was made of, and who moved which alias when.
import { get, post } from "../api.js";
import { metric, visible } from "../format.js";
import { useLive } from "../live.js";
import { ordered } from "../metric.js";
import { mapOf } from "../own.js";
import { Ask, Command, Table, Trouble, useOutcome, When } from "../parts.jsx";
import { to } from "../route.js";
import { Spark } from "../spark.jsx";
import { W } from "../words.js";
import { Proof } from "./model_proof.jsx";
import { useRef, useState } from "preact/hooks";

export function Models({ me }) {
  const { value, error, again } = useLive(
    async (signal) => {
      const names = (await get(["models"], {}, { signal })).map((each) => each.model);
      return Promise.all(names.map((name) => get(["models", name], {}, { signal })));
    },
    [],
    { soon: 10000 },
  );
  return (
    <section>
      <h1 tabindex={-1}>{W.models.title}</h1>
      <Trouble error={error} value={value} />
      {value?.length === 0 && (
        <div class="notice">
          <p>{W.models.empty}</p>
          <Command text={W.models.emptyCommand} />
        </div>
      )}
      {value?.map((model) => (
        <One key={model.model} model={model} me={me} again={again} />
      ))}
    </section>
  );
}

/** The metrics that all versions have, each with its values from the first version to the last. */
function curves(versions) {
  const oldest = [...versions].reverse().map((each) => ({ number: each.number, metrics: mapOf(each.metrics) })),
    names = [...(oldest[0]?.metrics.keys() || [])].filter((name) => oldest.every((each) => each.metrics.has(name)));
  return judgedFirst(names, versions[0].judged_by).map((name) => ({
    name,
    points: oldest.map((each) => [each.number, each.metrics.get(name)]),
  }));
}

/** The metrics that versions were compared by, those that the trainer reported, then the others. */
const judgedFirst = (names, judging, reported = []) => [
  ...new Set([...[...judging, ...reported].filter((name) => names.includes(name)), ...ordered(names.sort())]),
];

const MOST = 3, // metrics of a version in the table
  MOST_CURVES = 5; // the others unfold
const metrics = (version) => {
  const values = mapOf(version.metrics);
  return judgedFirst([...values.keys()], version.judged_by, version.said_by_trainer)
    .slice(0, MOST)
    .map((name) => `${name} ${metric(name, values.get(name))}`)
    .join(", ");
};

/**
 * @param {{ model: import("../../schemas/answers.d.ts").ModelPage, me: import("../app.jsx").Me,
 *   again: () => void }} props
 */
function One({ model, me, again }) {
  const drawn = model.versions.length ? curves(model.versions) : [];
  return (
    <section class="card">
      <div class="head">
        <h2>{visible(model.model)}</h2>
        {model.aliases.map((alias) => (
          <span key={alias.alias} class="state completed">
            {visible(`${alias.alias} → ${alias.version}`)}
          </span>
        ))}
      </div>
      <Curves list={drawn.slice(0, MOST_CURVES)} />
      {drawn.length > MOST_CURVES && (
        <details>
          <summary>{W.models.others(drawn.length - MOST_CURVES)}</summary>
          <Curves list={drawn.slice(MOST_CURVES)} />
        </details>
      )}
      <Table
        name={visible(model.model)}
        columns={W.models.versions}
        rows={model.versions.map((each) => [
          visible([each.number, ...each.aliases].join(" ")),
          <a href={to("run", [each.run])}>{visible(each.run)}</a>,
          visible(metrics(each)),
          visible(each.drop ? `${each.drop}@${each.generation}` : each.reads.join(", ")),
          each.from_run ? <a href={to("run", [each.from_run])}>{visible(each.from_run)}</a> : W.nothing,
          <When at={each.promoted_at} />,
          visible(each.by),
        ])}
      />
      {me.may_change && model.versions.length > 0 && <Move model={model} again={again} />}
      {model.versions.length > 0 && <Proof model={model} />}
      <h3>{W.models.history}</h3>
      <Table
        name={W.models.history}
        columns={W.models.lines}
        rows={model.history.map((line) => [
          <When at={line.at} />,
          visible(W.models.change(line, line.before || W.nothing, line.after || W.nothing)),
          visible(line.by),
          visible(line.why),
        ])}
      />
    </section>
  );
}

const Curves = ({ list }) => (
  <dl class="facts curves">
    {list.map(({ name, points }) => (
      <div key={name}>
        <dt>{visible(name)}</dt>
        <dd>
          <Spark name={name} points={points} /> {metric(name, points.at(-1)[1])}
        </dd>
      </div>
    ))}
  </dl>
);

/** Move an alias to a version: what uses the alias gets the other model. */
function Move({ model, again }) {
  const [alias, setAlias] = useState(model.aliases[0]?.alias ?? ""),
    [version, setVersion] = useState(String(model.versions[0].number)),
    [outcome, attempt] = useOutcome(),
    why = useRef(null);
  const move = () =>
    attempt(async () => {
      const body = { version: Number(version), why: why.current.value };
      await post(["models", model.model, "aliases", alias.trim()], body);
      again();
      return W.models.moved(alias.trim(), version);
    });
  return (
    <details>
      <summary>{W.models.move}</summary>
      <form class="inline" onSubmit={(e) => e.preventDefault()}>
        <label>
          {W.run.alias}
          <input value={alias} onInput={(e) => setAlias(e.currentTarget.value)} />
        </label>
        <label>
          {W.models.version}
          <select value={version} onChange={(e) => setVersion(e.currentTarget.value)}>
            {model.versions.map((each) => (
              <option key={each.number} value={String(each.number)}>
                {each.number}
              </option>
            ))}
          </select>
        </label>
        <label>
          {W.run.because}
          <input ref={why} maxlength={200} />
        </label>
        <Ask
          label={W.models.move}
          question={W.models.moveAsk(alias, version)}
          yes={W.models.moveYes}
          no={W.run.no}
          act={move}
        />
      </form>
      {outcome}
    </details>
  );
}
