. ./add.sh
[ "$(add 2 3)" = 5 ] && echo passed || { echo failed; exit 1; }
