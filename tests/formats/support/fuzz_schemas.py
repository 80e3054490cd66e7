"""Examples and words for the fuzzer, as JSON: schemas (``[schema, value]``) and JSON patches (``[document, patch]``)."""

from typing import Final

SCHEMA_SEEDS: Final = [
    (
        b'[{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^[a-z]+$","default":"x"},'
        b'"b":{"type":"integer","minimum":1,"exclusiveMinimum":true,"nullable":true}},"additionalProperties":false},'
        b'{"a":"ab","b":null,"c":1}]'
    ),
    (
        b'[{"type":"array","items":{"x-kubernetes-int-or-string":true,"nullable":true},"uniqueItems":true,"maxItems":3},'
        b'[1,"1",null,1.0]]'
    ),
    b'[{"properties":{"a":{"$ref":"#/definitions/p"}},"definitions":{"p":{"enum":["a","b"],"writeOnly":true}}},{"a":"c"}]',
    b'[{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"not":{}}}},1]',
    b'[{"oneOf":[{"required":["a"]},{"required":["b"]}],"anyOf":[{"type":"string"},{"type":"object"}]},{"a":1,"b":2}]',
    (
        b'[{"type":"object","patternProperties":{"^(a+)+$":{"format":"date-time"}},"additionalProperties":{"multipleOf":0.01}},'
        b'{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!":0.07,"aa":"2026-01-01"}]'
    ),
    b'[{"type":["string","null"],"format":"uri","minLength":2,"maxLength":9e2,"const":"a"},"http://[::1"]',
    b'[{"items":[{"default":{"a":[1]}},{"format":"duration"}],"additionalItems":{"format":"cidr"}},[null,"1h","x/8"]]',
    (
        b'[{"x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"x-kubernetes-embedded-resource":true,'
        b'"properties":{"b":{}}}},"x-required-for-helm":["a"],"x-extend":{"schema":"a"}},{"a":{"kind":"K","c":1},"d":2}]'
    ),
    (
        b'[{"properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["b"],"items":{'
        b'"x-kubernetes-validations":[{"rule":"self.b > oldSelf.b","message":"m","fieldPath":".c","reason":"FieldValueInvalid"}],'
        b'"properties":{"c":{"type":"number","deprecated":true},"b":{}}}},"d":{"x-deckhouse-immutable":true,"x-deprecated":"e",'
        b'"x-kubernetes-list-type":"set","x-deckhouse-validations":[{"expression":"self","message":"m"}]}}},'
        b'{"a":[{"b":1},{"b":1,"c":2}],"d":[1,1,{}]}]'
    ),
    b"[" + b'{"not":' * 90 + b"{}" + b"}" * 90 + b",1]",
    b"[" + b'{"anyOf":[{},' * 60 + b"{}" + b"]}" * 60 + b"," + b"[" * 60 + b"]" * 60 + b"]",
]
SCHEMA_WORDS: Final = [
    *(
        b'"type":"string",',
        b'"type":["integer","null"],',
        b'"type":"int-or-string",',
        b'"nullable":true,',
        b'"enum":[null],',
    ),
    *(
        b'"$ref":"#",',
        b'"$ref":"#/definitions/p",',
        b'"$ref":"#/allOf/0",',
        b'"default":{},',
        b'"writeOnly":true,',
        b'"not":{},',
    ),
    *(
        b'"additionalProperties":false,',
        b'"additionalProperties":{},',
        b'"properties":{"a":{}},',
        b'"items":{},',
        b'"items":[{}],',
    ),
    *(
        b'"allOf":[{}],',
        b'"anyOf":[{"type":"string"}],',
        b'"oneOf":[{},{}],',
        b'"required":["a"],',
        b'"required":true,',
    ),
    *(
        b'"pattern":"(?=a)",',
        b'"pattern":"(a{1000}){1000}",',
        b'"pattern":"\\\\pL[[]\\\\1",',
        b'"multipleOf":1e-300,',
        b'"minLength":1e300,',
    ),
    *(
        b'"minimum":1e400,',
        b'"maximum":99999999999999999999999999,',
        b'"exclusiveMaximum":true,',
        b'"format":"byte",',
        b'"$id":"a",',
    ),
    *(
        b'"x-kubernetes-validations":[{"rule":"a"}],',
        b'"x-deckhouse-validations":[{"expression":"a","message":"b"}],',
        b'"x-kubernetes-list-type":"set",',
        b'"x-kubernetes-list-type":[],',
        b'"x-deckhouse-immutable":true,',
        b'"deprecated":{},',
        b'"fieldPath":".a[\'b\']",',
    ),
    *(
        b"{}",
        b"[]",
        b"null,",
        b'"a":',
        b'"a",',
        b"1,",
        b"0.1,",
        b"{",
        b"}",
        b"[",
        b"]",
        b"true",
        b"\\u0000",
        b"\\ud800",
        b"-1",
    ),
]

JSON_PATCH_SEEDS: Final = [
    b'[{"a":{"b":[1,2]},"c":null},[{"op":"add","path":"/a/b/-","value":{"x":1}},{"op":"test","path":"/a/b/0","value":1}]]',
    b'[{"a":["x"]},[' + b'{"op":"copy","from":"/a","path":"/a/-"},' * 12 + b'{"op":"move","from":"/a/0","path":"/b"}]]',
    (
        b'[{"a":{"b":{}},"c":1},[{"op":"move","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":[]},'
        b'{"op":"remove","path":"/c"}]]'
    ),
    b'[[1,[2]],[{"op":"replace","path":"","value":{"~":1}},{"op":"add","path":"/~0~1","value":2},{"op":"remove","path":"/~0"}]]',
    b'[{},[{"op":"add","path":"/a","value":' + b"[" * 190 + b"]" * 190 + b'},{"op":"copy","from":"","path":"/b"}]]',
]
JSON_PATCH_WORDS: Final = [
    *(
        b'{"op":"copy","from":"/a","path":"/a/-"},',
        b'{"op":"copy","from":"","path":"/b"},',
        b'{"op":"test","path":"/a","value":1},',
    ),
    *(
        b'{"op":"move","from":"/a","path":"/b/c"},',
        b'{"op":"add","path":"/b","value":{}},',
        b'{"op":"remove","path":"/c"},',
    ),
    *(
        b'"/a/0"',
        b'"/-"',
        b'""',
        b'"/a~0b~1c"',
        b'"/99999999999999999999"',
        b'"/' + b"a/" * 300 + b'"',
        b'"value":1,',
        b"[]",
        b"{}",
        b"null",
    ),
]
