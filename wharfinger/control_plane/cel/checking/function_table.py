"""The table of functions and their overloads in cel-go's order; the module ``functions`` explains and reads it."""

from typing import Final

IP, CIDR, URL = "net.IP", "net.CIDR", "kubernetes.URL"
QUANTITY, SEMVER, FORMAT = "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.NamedFormat"
AUTHORIZER, PATH_CHECK, GROUP_CHECK, RESOURCE_CHECK, DECISION = (
    f"kubernetes.authorization.{name}"
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)

TABLE: Final = f"""
_?_:_
  conditional(bool, A, A) A
_&&_
  logical_and(bool, bool) bool
_||_
  logical_or(bool, bool) bool
!_
  logical_not(bool) bool
@not_strictly_false
  not_strictly_false(bool) bool
_==_
  equals(A, A) bool
_!=_
  not_equals(A, A) bool
_+_
  add_bytes(bytes, bytes) bytes
  add_double(double, double) double
  add_duration_duration(duration, duration) duration
  add_duration_timestamp(duration, timestamp) timestamp
  add_timestamp_duration(timestamp, duration) timestamp
  add_int64(int, int) int
  add_list(list(A), list(A)) list(A)
  add_string(string, string) string
  add_uint64(uint, uint) uint
_-_
  subtract_double(double, double) double
  subtract_duration_duration(duration, duration) duration
  subtract_int64(int, int) int
  subtract_timestamp_duration(timestamp, duration) timestamp
  subtract_timestamp_timestamp(timestamp, timestamp) duration
  subtract_uint64(uint, uint) uint
_*_
  multiply_double(double, double) double
  multiply_int64(int, int) int
  multiply_uint64(uint, uint) uint
_/_
  divide_double(double, double) double
  divide_int64(int, int) int
  divide_uint64(uint, uint) uint
_%_
  modulo_int64(int, int) int
  modulo_uint64(uint, uint) uint
-_
  negate_double(double) double
  negate_int64(int) int
_[_]
  index_list(list(A), int) A
  index_map(map(A, B), A) B
  optional_list_index_int(optional(list(A)), int) optional(A)
  optional_map_index_value(optional(map(A, B)), A) optional(B)
_[?_]
  list_optindex_optional_int(list(A), int) optional(A)
  optional_list_optindex_optional_int(optional(list(A)), int) optional(A)
  map_optindex_optional_value(map(A, B), A) optional(B)
  optional_map_optindex_optional_value(optional(map(A, B)), A) optional(B)
@in
  in_list(A, list(A)) bool
  in_map(A, map(A, B)) bool
size
  size_bytes(bytes) int
  bytes_size.(bytes) int
  size_list(list(A)) int
  list_size.(list(A)) int
  size_map(map(A, B)) int
  map_size.(map(A, B)) int
  size_string(string) int
  string_size.(string) int
bool
  bool_to_bool(bool) bool
  string_to_bool(string) bool
bytes
  bytes_to_bytes(bytes) bytes
  string_to_bytes(string) bytes
double
  double_to_double(double) double
  int64_to_double(int) double
  string_to_double(string) double
  uint64_to_double(uint) double
duration
  duration_to_duration(duration) duration
  int64_to_duration(int) duration
  string_to_duration(string) duration
dyn
  to_dyn(A) dyn
int
  int64_to_int64(int) int
  double_to_int64(double) int
  duration_to_int64(duration) int
  string_to_int64(string) int
  timestamp_to_int64(timestamp) int
  uint64_to_int64(uint) int
string
  string_to_string(string) string
  bool_to_string(bool) string
  bytes_to_string(bytes) string
  double_to_string(double) string
  duration_to_string(duration) string
  int64_to_string(int) string
  timestamp_to_string(timestamp) string
  uint64_to_string(uint) string
  ip_to_string({IP}) string
  cidr_to_string({CIDR}) string
timestamp
  timestamp_to_timestamp(timestamp) timestamp
  int64_to_timestamp(int) timestamp
  string_to_timestamp(string) timestamp
uint
  uint64_to_uint64(uint) uint
  double_to_uint64(double) uint
  int64_to_uint64(int) uint
  string_to_uint64(string) uint
type
  type(A) type(A)
contains
  contains_string.(string, string) bool
endsWith
  ends_with_string.(string, string) bool
matches
  matches(string, string) bool
  matches_string.(string, string) bool
startsWith
  starts_with_string.(string, string) bool
optional.of
  optional_of(A) optional(A)
optional.ofNonZeroValue
  optional_ofNonZeroValue(A) optional(A)
optional.none
  optional_none() optional(A)
optional.unwrap
  optional_unwrap(list(optional(A))) list(A)
unwrapOpt
  optional_unwrapOpt.(list(optional(A))) list(A)
value
  optional_value.(optional(A)) A
hasValue
  optional_hasValue.(optional(A)) bool
or
  optional_or_optional.(optional(A), optional(A)) optional(A)
orValue
  optional_orValue_value.(optional(A), A) A
find
  string_find_string.(string, string) string
findAll
  string_find_all_string.(string, string) list(string)
  string_find_all_string_int.(string, string, int) list(string)
url
  string_to_url(string) {URL}
isURL
  is_url_string(string) bool
getScheme
  url_get_scheme.({URL}) string
getHost
  url_get_host.({URL}) string
getHostname
  url_get_hostname.({URL}) string
getPort
  url_get_port.({URL}) string
getEscapedPath
  url_get_escaped_path.({URL}) string
getQuery
  url_get_query.({URL}) map(string, list(string))
ip
  string_to_ip(string) {IP}
  cidr_ip.({CIDR}) {IP}
family
  ip_family.({IP}) int
ip.isCanonical
  ip_is_canonical(string) bool
isUnspecified
  ip_is_unspecified.({IP}) bool
isLoopback
  ip_is_loopback.({IP}) bool
isLinkLocalMulticast
  ip_is_link_local_multicast.({IP}) bool
isLinkLocalUnicast
  ip_is_link_local_unicast.({IP}) bool
isGlobalUnicast
  ip_is_global_unicast.({IP}) bool
isIP
  is_ip(string) bool
cidr
  string_to_cidr(string) {CIDR}
isCIDR
  is_cidr(string) bool
containsIP
  cidr_contains_ip_string.({CIDR}, string) bool
  cidr_contains_ip_ip.({CIDR}, {IP}) bool
containsCIDR
  cidr_contains_cidr_string.({CIDR}, string) bool
  cidr_contains_cidr.({CIDR}, {CIDR}) bool
prefixLength
  cidr_prefix_length.({CIDR}) int
masked
  cidr_masked.({CIDR}) {CIDR}
quantity
  string_to_quantity(string) {QUANTITY}
isQuantity
  is_quantity_string(string) bool
sign
  quantity_sign.({QUANTITY}) int
isGreaterThan
  quantity_is_greater_than.({QUANTITY}, {QUANTITY}) bool
  semver_is_greater_than.({SEMVER}, {SEMVER}) bool
isLessThan
  quantity_is_less_than.({QUANTITY}, {QUANTITY}) bool
  semver_is_less_than.({SEMVER}, {SEMVER}) bool
compareTo
  quantity_compare_to.({QUANTITY}, {QUANTITY}) int
  semver_compare_to.({SEMVER}, {SEMVER}) int
asApproximateFloat
  quantity_get_float.({QUANTITY}) double
asInteger
  quantity_get_int.({QUANTITY}) int
isInteger
  quantity_is_integer.({QUANTITY}) bool
add
  quantity_add.({QUANTITY}, {QUANTITY}) {QUANTITY}
  quantity_add_int.({QUANTITY}, int) {QUANTITY}
sub
  quantity_sub.({QUANTITY}, {QUANTITY}) {QUANTITY}
  quantity_sub_int.({QUANTITY}, int) {QUANTITY}
semver
  string_to_semver(string) {SEMVER}
  string_bool_to_semver(string, bool) {SEMVER}
isSemver
  is_semver_string(string) bool
  is_semver_string_bool(string, bool) bool
major
  semver_major.({SEMVER}) int
minor
  semver_minor.({SEMVER}) int
patch
  semver_patch.({SEMVER}) int
format.named
  format-named(string) optional({FORMAT})
validate
  format-validate.({FORMAT}, string) optional(list(string))
charAt
  string_char_at_int.(string, int) string
format
  string_format.(string, list(dyn)) string
lowerAscii
  string_lower_ascii.(string) string
replace
  string_replace_string_string.(string, string, string) string
  string_replace_string_string_int.(string, string, string, int) string
split
  string_split_string.(string, string) list(string)
  string_split_string_int.(string, string, int) list(string)
substring
  string_substring_int.(string, int) string
  string_substring_int_int.(string, int, int) string
trim
  string_trim.(string) string
upperAscii
  string_upper_ascii.(string) string
strings.quote
  strings_quote(string) string
join
  list_join.(list(string)) string
  list_join_string.(list(string), string) string
sets.contains
  list_sets_contains_list(list(A), list(A)) bool
sets.equivalent
  list_sets_equivalent_list(list(A), list(A)) bool
sets.intersects
  list_sets_intersects_list(list(A), list(A)) bool
indexOf
  list_a_index_of_int.(list(A), A) int
  string_index_of_string.(string, string) int
  string_index_of_string_int.(string, string, int) int
lastIndexOf
  list_a_last_index_of_int.(list(A), A) int
  string_last_index_of_string.(string, string) int
  string_last_index_of_string_int.(string, string, int) int
distinct
  list_distinct.(list(A)) list(A)
flatten
  list_flatten.(list(list(A))) list(A)
  list_flatten_int.(list(dyn), int) list(dyn)
lists.range
  lists_range(int) list(int)
reverse
  list_reverse.(list(A)) list(A)
slice
  list_slice.(list(A), int, int) list(A)
first
  list_first.(list(A)) optional(A)
last
  list_last.(list(A)) optional(A)
path
  authorizer_path.({AUTHORIZER}, string) {PATH_CHECK}
group
  authorizer_group.({AUTHORIZER}, string) {GROUP_CHECK}
serviceAccount
  authorizer_serviceaccount.({AUTHORIZER}, string, string) {AUTHORIZER}
resource
  groupcheck_resource.({GROUP_CHECK}, string) {RESOURCE_CHECK}
subresource
  resourcecheck_subresource.({RESOURCE_CHECK}, string) {RESOURCE_CHECK}
namespace
  resourcecheck_namespace.({RESOURCE_CHECK}, string) {RESOURCE_CHECK}
name
  resourcecheck_name.({RESOURCE_CHECK}, string) {RESOURCE_CHECK}
fieldSelector
  authorizer_fieldselector.({RESOURCE_CHECK}, string) {RESOURCE_CHECK}
labelSelector
  authorizer_labelselector.({RESOURCE_CHECK}, string) {RESOURCE_CHECK}
check
  pathcheck_check.({PATH_CHECK}, string) {DECISION}
  resourcecheck_check.({RESOURCE_CHECK}, string) {DECISION}
errored
  decision_errored.({DECISION}) bool
error
  decision_error.({DECISION}) string
allowed
  decision_allowed.({DECISION}) bool
reason
  decision_reason.({DECISION}) string
jsonpatch.escapeKey
  string_jsonpatch_escapeKey_string(string) string
cel.@mapInsert
  @mapInsert_map_map(map(A, B), map(A, B)) map(A, B)
  @mapInsert_map_key_value(map(A, B), A, B) map(A, B)
"""
