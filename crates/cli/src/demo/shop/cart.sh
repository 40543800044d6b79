# What an order costs: cart.sh DISCOUNT PRICE...
# The discount is in percent.
discount=$1
shift
total=0
for price in "$@"; do
  total=$((total + price))
done
echo "$total"
