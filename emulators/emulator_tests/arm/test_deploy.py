"""Bicep is evaluated as the resource provider evaluates it: names, ids, loops, conditions, modules, and errors with
file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulators.arm.deploy import Deployment, deploy
from emulators.arm.resources import parents
from emulators.arm.syntax import BicepError

QUEUES = "Microsoft.Storage/storageAccounts/queueServices/queues"


def deployed(folder: Path, text: str, **parameters: object) -> Deployment:
    (folder / "main.bicep").write_text(text)
    return deploy(folder / "main.bicep", parameters)


def test_a_parent_gives_names_and_ids(tmp_path: Path) -> None:
    """A child's name and id contain the parent's name and id, also in a loop. A scope is the id of its resource."""
    found = deployed(
        tmp_path,
        """
        param names array = [ 'a', 'b' ]
        resource account 'Microsoft.Storage/storageAccounts@1' = { name: 'st' }
        resource service 'Microsoft.Storage/storageAccounts/queueServices@1' = { parent: account, name: 'default' }
        resource queues 'Microsoft.Storage/storageAccounts/queueServices/queues@1' = [for (name, i) in names: {
          parent: service // a comment among the properties
          name: '${name}-${i}'
        }]
        resource grant 'Microsoft.Authorization/roleAssignments@1' = { name: 'g', scope: account }
        """,
    )
    assert [queue.name for queue in found.of(QUEUES)] == ["st/default/a-0", "st/default/b-1"]
    account = found.one("Microsoft.Storage/storageAccounts")
    assert found.of(QUEUES)[0].id == f"{account.id}/queueServices/default/queues/a-0"
    grant = found.one("Microsoft.Authorization/roleAssignments")
    assert (grant.scope, grant.id) == (account.id, f"{account.id}/providers/Microsoft.Authorization/roleAssignments/g")
    assert list(parents(grant.id))[:2] == [grant.id, account.id]


def test_modules_and_conditions(tmp_path: Path) -> None:
    """A module is evaluated with its parameters, its outputs can be read, and a false condition omits a resource."""
    (tmp_path / "part.bicep").write_text(
        """
        param name string
        resource it 'A.B/c@1' = { name: name }
        output id string = it.id
        """
    )
    found = deployed(
        tmp_path,
        """
        param more bool = false
        module first 'part.bicep' = { params: { name: toLower('ONE') } }
        module second 'part.bicep' = if (more) { params: { name: 'two' } }
        module many 'part.bicep' = [for name in [ 'x', 'y' ]: { params: { name: name } }]
        output id string = first.outputs.id
        """,
    )
    assert [c.name for c in found.of("a.b/C")] == ["one", "x", "y"]
    assert found.outputs["id"].endswith("/providers/A.B/c/one")


def test_expressions(tmp_path: Path) -> None:
    """Strings, escapes, multi-line strings, objects, ternaries, lambdas and operators have Bicep's meaning."""
    found = deployed(
        tmp_path,
        r"""
        param who array = [ { id: 'p' } ]
        var texts = { plain: 'it\'s ${length(who)}', long: '''
a ${b}
''', 'with-dash': true }
        output plain string = texts.plain
        output long string = texts.long
        output ids array = concat(map(who, w => w.id), empty(who) ? [ 1 ] : [ 2, 3 ])
        output and bool = texts['with-dash'] && !(1 == 2) || false
        output merged object = union({ a: 1, b: 1 }, { b: 2 })
        """,
    )
    assert found.outputs == {
        "plain": "it's 1",
        "long": "a ${b}\n",
        "ids": ["p", 2, 3],
        "and": True,
        "merged": {"a": 1, "b": 2},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("param a string\noutput b string = a", "main.bicep: parameter a has no value"),
        ("@allowed([ 'x', 'y' ])\nparam a string\noutput b string = a", "a is 'z'; choose one of x, y"),
        ("@minLength(3)\nparam a string\noutput b string = a", "a is 'z'; its length must be at least 3"),
        ("@maxLength(0)\n@minLength(0)\nparam a string\noutput b string = a", "must be at least 0 and at most 0"),
        ("var a = b\nvar b = a\noutput c string = a", "main.bicep: a needs b needs a: a circle"),
        ("output a string = nothing", "main.bicep: nothing is not declared"),
        ("var a = { b: 1 }\noutput c int = a.d", "main.bicep:2: there is no 'd' in 'a.d'"),
        ("output a string = newGuid()", "main.bicep:1: the function newGuid is not taken here"),
        ("resource r 'A/b@1' = {\n  name: \n}", "main.bicep:2: this does not parse"),
        ("module m 'gone.bicep' = {}", "main.bicep:1: there is no module file gone.bicep"),
        ("resource r 'A/b/c@1' = { name: 'one' }", "has 2 levels, its name 'one' 1"),
        ("resource r 'A/b@1' = { name: 'x' }\nresource s 'A/b@1' = { name: 'x' }", "is declared twice"),
        ("resource r 'A/b@1' = { name: 'x' }\noutput o string = r.properties.secret", "nobody knows properties.secret"),
        (
            "var a = { b: [ subscription().id ] }\noutput b object = a",
            "the grammar can't read a call without arguments",
        ),
        ("type t = string", "main.bicep:1: type_declaration is not taken here"),
    ],
)
def test_errors_say_where(tmp_path: Path, text: str, message: str) -> None:
    """An error in reading or evaluating has the file and the line. No value is guessed."""
    with pytest.raises(BicepError) as refused:
        deployed(tmp_path, text, **({"a": "z"} if text.startswith("@") else {}))
    assert message in str(refused.value)
