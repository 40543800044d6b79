# Checks cart.sh.
failed=0
check() {
  name=$1 expected=$2
  shift 2
  got=$(sh cart.sh "$@")
  if [ "$got" = "$expected" ]; then
    echo "ok    $name"
  else
    echo "FAIL  $name: expected $expected, got $got"
    failed=1
  fi
}
check "three items" 60 0 10 20 30
check "ten percent off" 90 10 50 50
exit $failed
